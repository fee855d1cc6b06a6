#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../core/thread_pool.h"
#include "../matrix/matrix.h"
#include "../ops/attention/attention.h"
#include "step_plan.h"

namespace octavo {

/// What an adapter adds to neighbouring outputs of a linear: scale * up * (its rows of the site's down) * x.
struct AdapterPart {
    /// First of the linear's outputs; `up` has as many rows as there are.
    int64_t column;
    /// Columns of `up`, and where they start among the rows of the site's `down`.
    int64_t rank_begin;
    float scale;
    std::shared_ptr<const Matrix> up;
};

/// The parts that share a linear's input; their down projections are stacked.
struct AdapterSite {
    std::shared_ptr<const Matrix> down;
    std::vector<AdapterPart> parts;
};

/// Low-rank additions to a program's linears (LoRA, arXiv 2106.09685), by the linear's site; one without `down` gets nothing.
struct Adapter {
    std::vector<AdapterSite> sites;

    const AdapterSite* at(int32_t site) const {
        const size_t index = static_cast<size_t>(site);
        return site >= 0 && index < sites.size() && sites[index].down != nullptr ? &sites[index] : nullptr;
    }
};

/// Adds the adapters of a step's sequences to its linears. Rows of one adapter are multiplied together; what is added
/// to a row depends on that row and its adapter alone, and rows without an adapter are left as they are.
class AdapterRunner {
public:
    explicit AdapterRunner(ThreadPool& pool) : pool_(pool) {}

    /// Takes the step's rows: its tokens, and after `gather` its output rows.
    void begin(const StepPlan& plan);
    void gather(const StepPlan& plan);

    /// Whether any row's adapter adds to this linear.
    bool touches(int32_t site) const;
    /// Adds to `out`, which holds the linear's outputs for the activations `in`.
    void add(int32_t site, Rows in, Rows out);

private:
    struct Group {
        const Adapter* adapter;
        std::vector<int32_t> rows;
    };

    void add_rows(const AdapterSite& site, const int32_t* row_indices, int64_t m, Rows in, Rows out);

    ThreadPool& pool_;
    /// Not the executor's: the encoded rows there outlive a linear.
    Workspace workspace_;
    /// The first `num_groups_` are the step's; the others keep their memory.
    std::vector<Group> groups_;
    size_t num_groups_ = 0;
    std::vector<float> low_;
    std::vector<float> added_;
};

}  // namespace octavo
