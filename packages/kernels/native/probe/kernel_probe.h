#pragma once
#include <vector>

#include "../core/isa.h"

namespace octavo {

/// Seconds that a path took for a kind's sample of work.
struct ProbedPath {
    KernelPath path;
    double seconds;
};

/// Times each path that this machine has for a kind and that differs from the others: the present one first. The sample is of many
/// rows, whose products the arithmetic bounds, in a few milliseconds on the calling thread. Nothing else may compute meanwhile.
std::vector<ProbedPath> probe_kernels(KernelKind kind);

}  // namespace octavo
