#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "matrix.h"

namespace octavo {

/// What, beside its bytes, makes a packed matrix: as MatrixSource has it, of all sources together.
struct PackedForm {
    WeightType type;
    int64_t rows;
    int64_t cols;
    int64_t group;
    bool zeros;
};

/// Bytes of a matrix packed in this form; 0 where there is no such matrix.
size_t packed_bytes(const PackedForm& form);

/// A matrix over packed bytes [offset, offset + packed_bytes(form)) of a file, which stays mapped for as long as the matrix lives.
/// Throws std::runtime_error when the file is too short or the offset is not on a cache line.
std::unique_ptr<Matrix> map_packed(const PackedForm& form, std::shared_ptr<const MappedFile> file, size_t offset);

/// Tells damaged bytes from those that were written, at the speed of memory; no defence against forgery. Does not depend on the
/// number of threads.
uint64_t packed_checksum(const uint8_t* data, size_t size, ThreadPool& pool);

}  // namespace octavo
