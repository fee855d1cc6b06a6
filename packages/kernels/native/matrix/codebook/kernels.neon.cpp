#include "../../simd/neon.h"

#include "codebook_panel.h"

namespace octavo {

const CodebookKernelTable codebook_kernels_neon = make_codebook_kernels();

}  // namespace octavo
