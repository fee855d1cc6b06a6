#include "aligned_memory.h"

#include <cstring>
#include <new>
#include <utility>

#include "platform.h"

namespace octavo {

namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

AlignedMemory::AlignedMemory(size_t bytes, Pages pages) : size_(bytes) {
    if (bytes == 0) return;
    if (bytes < kHugePage) {
        const size_t rounded = round_up(bytes, kCacheLine);
        data_ = static_cast<uint8_t*>(allocate_aligned(kCacheLine, rounded));
        if (data_ == nullptr) throw std::bad_alloc();
        std::memset(data_, 0, rounded);
        return;
    }
    mapped_ = bytes + kHugePage;
    mapping_ = map_zeroed(mapped_);
    if (mapping_ == nullptr) throw std::bad_alloc();
    data_ = reinterpret_cast<uint8_t*>(round_up(reinterpret_cast<uintptr_t>(mapping_), kHugePage));
    // The tail short of a whole huge page stays on small pages: it would cost up to 2 MB for each matrix.
    const size_t small = pages == Pages::small_first ? kHugePage : 0;
    advise_huge_pages(data_ + small, bytes / kHugePage * kHugePage - small, true);
    if (small > 0) advise_huge_pages(data_, small, false);
}

AlignedMemory::~AlignedMemory() {
    if (file_ != nullptr) return;
    if (mapping_ != nullptr) {
        unmap_zeroed(mapping_, mapped_);
    } else {
        free_aligned(data_);
    }
}

AlignedMemory AlignedMemory::view(std::shared_ptr<const MappedFile> file, size_t offset, size_t bytes) {
    AlignedMemory memory;
    memory.data_ = const_cast<uint8_t*>(file->data()) + offset;
    memory.size_ = bytes;
    memory.file_ = std::move(file);
    return memory;
}

AlignedMemory::AlignedMemory(AlignedMemory&& other) noexcept { *this = std::move(other); }

AlignedMemory& AlignedMemory::operator=(AlignedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_, other.mapped_);
    std::swap(file_, other.file_);
    return *this;
}

}  // namespace octavo
