#include "packed_form.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "float/float_matrix.h"
#include "float/float_pack.h"
#include "quantised/quantised_matrix.h"
#include "source.h"

namespace octavo {

namespace {

bool is_possible(const PackedForm& form) {
    if (is_codebook(form.type) || form.rows < 1 || form.cols < 1 || form.cols % block_of(form.type).columns != 0) return false;
    if (!has_plain_groups(form.type) && form.type != WeightType::uint8) return true;
    return form.group >= kGroup && form.group % kGroup == 0 && form.cols % form.group == 0;
}

constexpr size_t kChecksumChunk = size_t{1} << 20;
// Odd constants of SplitMix64 (Steele, Lea, Flood 2014).
constexpr uint64_t kMultiplier = 0xbf58476d1ce4e5b9;
constexpr uint64_t kIncrement = 0x9e3779b97f4a7c15;

uint64_t mix(uint64_t sum, uint64_t word) {
    const uint64_t product = (sum ^ word) * kMultiplier;
    return product ^ product >> 32;
}

/// Eight sums run side by side, so that none waits for its own multiplication.
uint64_t chunk_checksum(const uint8_t* data, size_t size) {
    constexpr size_t kLanes = 8;
    uint64_t sums[kLanes];
    for (size_t i = 0; i < kLanes; ++i) sums[i] = kIncrement * (i + 1);
    size_t at = 0;
    for (; at + sizeof sums <= size; at += sizeof sums) {
        uint64_t words[kLanes];
        std::memcpy(words, data + at, sizeof words);
        for (size_t i = 0; i < kLanes; ++i) sums[i] = mix(sums[i], words[i]);
    }
    uint64_t sum = size;
    for (; at < size; ++at) sum = mix(sum, data[at]);
    for (const uint64_t lane : sums) sum = mix(sum, lane);
    return sum;
}

}  // namespace

size_t packed_bytes(const PackedForm& form) {
    if (!is_possible(form)) return 0;
    if (is_float(form.type)) {
        const int64_t panels = (form.rows + kPanelRows - 1) / kPanelRows;
        return static_cast<size_t>(panels * float_panel_bytes(form.type, form.cols));
    }
    return quantised_panels(form.type, form.zeros, form.rows, form.cols, form.group).bytes();
}

std::unique_ptr<Matrix> map_packed(const PackedForm& form, std::shared_ptr<const MappedFile> file, size_t offset) {
    const size_t bytes = packed_bytes(form);
    if (bytes == 0 || offset % 64 != 0 || offset > file->size() || bytes > file->size() - offset) {
        throw std::runtime_error(file->path() + ": holds no packed matrix of this form at " + std::to_string(offset));
    }
    AlignedMemory memory = AlignedMemory::view(std::move(file), offset, bytes);
    if (is_float(form.type)) return std::make_unique<FloatMatrix>(form.type, form.rows, form.cols, std::move(memory));
    QuantisedPanels panels = quantised_panels(form.type, form.zeros, form.rows, form.cols, form.group);
    panels.memory = std::move(memory);
    return std::make_unique<QuantisedMatrix>(std::move(panels));
}

uint64_t packed_checksum(const uint8_t* data, size_t size, ThreadPool& pool) {
    const size_t num_chunks = (size + kChecksumChunk - 1) / kChecksumChunk;
    std::vector<uint64_t> sums(num_chunks);
    pool.parallel_for(static_cast<int64_t>(num_chunks), 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
            const size_t first = static_cast<size_t>(i) * kChecksumChunk;
            sums[static_cast<size_t>(i)] = chunk_checksum(data + first, std::min(kChecksumChunk, size - first));
        }
    });
    uint64_t sum = kIncrement;
    for (const uint64_t chunk : sums) sum = mix(sum, chunk);
    return sum;
}

}  // namespace octavo
