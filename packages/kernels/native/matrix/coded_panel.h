// The decoding of coded panels, 16 rows at a time. An instruction set's source file defines the two functions that compilers do not
// turn into vectors by themselves, and includes this, all inside an anonymous namespace: `Table`, whose `lookup(codes, out)` gives
// the 16 entries that 8 bytes of nibbles name, and `from_e4m3(codes, out)`. Without `restrict` the codes, being bytes, might be what
// is written to, and the rest would not become vectors either.

void decode_f8_e4m3(const uint8_t* __restrict codes, int64_t columns, const float*, const float* __restrict scales,
                    const float* __restrict zeros, float* __restrict out) {
    for (int64_t c = 0; c < columns; ++c, codes += kPanelRows, out += kPanelRows) {
        float values[kPanelRows];
        from_e4m3(codes, values);
        for (int i = 0; i < kPanelRows; ++i) out[i] = scales[i] * (values[i] - zeros[i]);
    }
}

void decode_uint8(const uint8_t* __restrict codes, int64_t columns, const float*, const float* __restrict scales,
                    const float* __restrict zeros, float* __restrict out) {
    for (int64_t c = 0; c < columns; ++c, codes += kPanelRows, out += kPanelRows) {
        for (int i = 0; i < kPanelRows; ++i) out[i] = scales[i] * (static_cast<float>(codes[i]) - zeros[i]);
    }
}

void decode_table4(const uint8_t* __restrict codes, int64_t columns, const float* table, const float* __restrict scales,
                   const float* __restrict zeros, float* __restrict out) {
    const Table entries(table);
    for (int64_t c = 0; c < columns; ++c, codes += kPanelRows / 2, out += kPanelRows) {
        float values[kPanelRows];
        entries.lookup(codes, values);
        for (int i = 0; i < kPanelRows; ++i) out[i] = scales[i] * (values[i] - zeros[i]);
    }
}

constexpr CodedKernelTable kCodedTable{decode_f8_e4m3, decode_uint8, decode_table4};
