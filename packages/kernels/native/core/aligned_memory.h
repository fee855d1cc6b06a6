#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "mapped_file.h"

namespace octavo {

/// What large memory lies on. A huge page (2 MB) is resident as a whole from the first byte that is written to it.
enum class Pages {
    huge,
    /// Small ones up to the first huge page's end: for memory that fills from its start and often not much of it.
    small_first,
};

/// Zeroed memory aligned to 64 bytes, or to 2 MB with huge pages asked for where it is large. Movable, one owner.
class AlignedMemory {
public:
    AlignedMemory() = default;
    /// Throws std::bad_alloc.
    explicit AlignedMemory(size_t bytes, Pages pages = Pages::huge);
    /// Bytes of a mapped file in place of memory of its own, to be read only.
    static AlignedMemory view(std::shared_ptr<const MappedFile> file, size_t offset, size_t bytes);
    ~AlignedMemory();
    AlignedMemory(AlignedMemory&& other) noexcept;
    AlignedMemory& operator=(AlignedMemory&& other) noexcept;
    AlignedMemory(const AlignedMemory&) = delete;
    AlignedMemory& operator=(const AlignedMemory&) = delete;

    uint8_t* data() const { return data_; }
    size_t size() const { return size_; }

private:
    uint8_t* data_ = nullptr;
    size_t size_ = 0;
    /// Start and length of the mapping that holds `data_`.
    void* mapping_ = nullptr;
    size_t mapped_ = 0;
    /// Set when the bytes are a file's.
    std::shared_ptr<const MappedFile> file_;
};

}  // namespace octavo
