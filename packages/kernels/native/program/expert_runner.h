#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../core/function_ref.h"
#include "../core/thread_pool.h"
#include "../matrix/matrix.h"
#include "expert_routing.h"
#include "program.h"
#include "rank_group.h"

namespace octavo {

/// Runs the gated MLPs of a mixture of experts on the rows that chose them. Each expert multiplies its rows together; the experts'
/// products are cut into shares by their work, which threads take from one list, so that uneven experts keep them all busy.
/// A row's result depends on that row alone: its experts' outputs are weighted and summed in ascending order of expert.
class ExpertRunner {
public:
    explicit ExpertRunner(ThreadPool& pool);

    /// Throws std::bad_alloc.
    void run(const ExpertsOp& op, Rows in, Rows scores, Rows out, int64_t num_rows, Rank& rank);

private:
    /// One matrix times the rows of one expert.
    struct Product {
        const Matrix* matrix;
        const Vector* bias;  // may be null
        int64_t first_choice;
        int64_t count;
        /// Output of the first choice.
        float* y;
        size_t encoded_at;
        /// Rows of the products before it.
        int64_t rows_before;
        int64_t shares_before;
        int64_t shares;
    };
    /// What a thread needs to compute a share on its own.
    struct Lane {
        ThreadPool alone{1};
        Workspace workspace;
    };
    using RowOf = FunctionRef<const float*(int64_t choice)>;

    /// To multiply an expert's rows; the product of choice 0 would lie at `y`.
    void add_product(size_t expert, const Matrix& matrix, const Vector* bias, float* y, int64_t ldy);
    /// Computes all products; row `choice` of their input is `row_of(choice)`. Takes them off the list.
    void multiply(const RowOf& row_of, int64_t ldy, const GateFunction* gate);
    void encode(const RowOf& row_of, uint8_t* encoded, int64_t num_rows);
    int64_t cut_into_shares();
    /// The rows that choices read, each times its choice's weight.
    const float* weigh(Rows in, float* weighed, int64_t width, int64_t num_rows);
    /// The activation of experts that gate nothing, on `width` columns of the inner ones.
    void activate_plain(const ExpertsOp& op, float* activated, int64_t width, int64_t num_choices);
    void combine(const ExpertsOp& op, const float* outputs, Rows out, int64_t num_rows);

    ThreadPool& pool_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    ExpertRouting routing_;
    std::vector<Product> products_;
    std::vector<float> ones_;
    Workspace memory_;
};

}  // namespace octavo
