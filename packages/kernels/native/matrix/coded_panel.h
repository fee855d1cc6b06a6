// The decoding of coded panels in plain loops over the 16 rows, which compilers turn into vectors of any instruction set.
// An instruction set's source file defines `Table`, whose `lookup(codes, out)` gives the 16 entries that 8 bytes of nibbles name, and
// includes this, all inside an anonymous namespace.

void decode_f8_e4m3(const uint8_t* codes, int64_t columns, const float*, const float* scales, const float* zeros, float* out) {
    for (int64_t c = 0; c < columns; ++c, codes += kPanelRows, out += kPanelRows) {
        for (int i = 0; i < kPanelRows; ++i) {
            const uint32_t code = codes[i];
            // The code's fields in an f32's places; 2^120 makes up for the biases and normalises subnormals.
            const float value = float_from_bits((code & 0x80u) << 24 | (code & 0x7fu) << 20) * 0x1p120f;
            out[i] = scales[i] * (value - zeros[i]);
        }
    }
}

void decode_uint8(const uint8_t* codes, int64_t columns, const float*, const float* scales, const float* zeros, float* out) {
    for (int64_t c = 0; c < columns; ++c, codes += kPanelRows, out += kPanelRows) {
        for (int i = 0; i < kPanelRows; ++i) out[i] = scales[i] * (static_cast<float>(codes[i]) - zeros[i]);
    }
}

void decode_table4(const uint8_t* codes, int64_t columns, const float* table, const float* scales, const float* zeros,
                   float* out) {
    const Table entries(table);
    for (int64_t c = 0; c < columns; ++c, codes += kPanelRows / 2, out += kPanelRows) {
        entries.lookup(codes, out);
        for (int i = 0; i < kPanelRows; ++i) out[i] = scales[i] * (out[i] - zeros[i]);
    }
}

constexpr CodedKernelTable kCodedTable{decode_f8_e4m3, decode_uint8, decode_table4};
