#pragma once
#include <cstdint>

namespace octavo {

/// Decodes `columns` columns of one panel that share their scales: out[column][16] = scales[16] * (value(code) - zeros[16]).
/// Codes are packed [column][16 rows] bytes, or for table4 [column][8 bytes], byte i holding row i (low nibble) and i + 8.
using DecodeCodes = void (*)(const uint8_t* codes, int64_t columns, const float* table, const float* scales,
                             const float* zeros, float* out);

struct CodedKernelTable {
    /// E4M3 (Micikevicius et al., arXiv 2209.05433): sign, 4 exponent bits of bias 7, 3 mantissa bits; 0x7f and 0xff are NaN.
    DecodeCodes f8_e4m3;
    DecodeCodes uint8;
    /// Nibbles that index `table[16]`.
    DecodeCodes table4;
};

const CodedKernelTable& coded_kernels_scalar();
const CodedKernelTable& coded_kernels_avx2();
const CodedKernelTable& coded_kernels_avx512();
const CodedKernelTable& coded_kernels_neon();

/// The table for active_isa().
const CodedKernelTable& coded_kernels();

}  // namespace octavo
