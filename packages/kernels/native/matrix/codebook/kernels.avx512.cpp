#include "../../simd/avx512.h"

#include "codebook_panel.h"

namespace octavo {

const CodebookKernelTable codebook_kernels_avx512 = make_codebook_kernels();

}  // namespace octavo
