#include "aligned_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

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
        data_ = static_cast<uint8_t*>(std::aligned_alloc(kCacheLine, rounded));
        if (data_ == nullptr) throw std::bad_alloc();
        std::memset(data_, 0, rounded);
        return;
    }
    mapped_ = bytes + kHugePage;
    mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping_ == MAP_FAILED) throw std::bad_alloc();
    data_ = reinterpret_cast<uint8_t*>(round_up(reinterpret_cast<uintptr_t>(mapping_), kHugePage));
#ifdef MADV_HUGEPAGE
    // The tail short of a whole huge page stays on small pages: it would cost up to 2 MB for each matrix.
    const size_t small = pages == Pages::small_first ? kHugePage : 0;
    madvise(data_ + small, bytes / kHugePage * kHugePage - small, MADV_HUGEPAGE);
    if (small > 0) madvise(data_, small, MADV_NOHUGEPAGE);
#endif
}

AlignedMemory::~AlignedMemory() {
    if (file_ != nullptr) return;
    if (mapping_ != nullptr) {
        munmap(mapping_, mapped_);
    } else {
        std::free(data_);
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
