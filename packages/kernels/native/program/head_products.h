#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../core/thread_pool.h"
#include "../matrix/matrix.h"
#include "ops.h"

namespace octavo {

/// Multiplies each head of a step's rows with the head's own matrix; threads take heads.
class HeadProducts {
public:
    explicit HeadProducts(ThreadPool& pool);

    /// Throws std::bad_alloc.
    void run(const HeadLinearOp& op, Rows in, Rows out, int64_t num_rows);

private:
    /// What a thread needs to compute a product on its own.
    struct Lane {
        ThreadPool alone{1};
        Workspace workspace;
    };

    ThreadPool& pool_;
    std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace octavo
