#include "../../simd/scalar.h"

#include "codebook_panel.h"

namespace octavo {

const CodebookKernelTable codebook_kernels_scalar = make_codebook_kernels();

}  // namespace octavo
