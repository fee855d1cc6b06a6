#include "../../simd/avx2.h"

#include "codebook_panel.h"

namespace octavo {

const CodebookKernelTable codebook_kernels_avx2 = make_codebook_kernels();

}  // namespace octavo
