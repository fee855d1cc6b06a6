#pragma once
#include "../core/thread_pool.h"

namespace octavo::test {

/// Bytes per second that the pool's threads read together from memory beyond the caches: the best of `passes` over 256 MiB.
double read_bandwidth(ThreadPool& pool, int passes);

}  // namespace octavo::test
