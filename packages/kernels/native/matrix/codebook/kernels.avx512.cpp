#include <immintrin.h>

#include <cstring>

#include "../../core/half.h"
#include "codebook_kernels.h"
#include "../quantised/layout.h"

// GCC 12 takes its own _mm512_undefined_ps() for an uninitialised variable.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace octavo {

namespace {

constexpr bool kPairs = false;

#include "coded_avx512.h"

#include "codebook_panel.h"

}  // namespace

const CodedKernelTable& coded_kernels_avx512() {
    static constexpr CodedKernelTable table{kPairs,
                                            nullptr,
                                            {decode_values<CodesF8>, decode_weights<CodesF8>, nullptr},
                                            {decode_values<CodesU8>, decode_weights<CodesU8>, nullptr},
                                            {decode_values<CodesTable4>, decode_weights<CodesTable4>, nullptr}};
    return table;
}

}  // namespace octavo
