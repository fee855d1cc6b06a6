#include "mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace octavo {

namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
    throw std::runtime_error(path + ": " + what + ": " + std::strerror(error));
}

struct Descriptor {
    int fd;
    ~Descriptor() {
        if (fd >= 0) close(fd);
    }
};

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
    Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.fd < 0) fail(path, "cannot open", errno);
    struct stat info;
    if (fstat(file.fd, &info) != 0) fail(path, "cannot stat", errno);
    if (!S_ISREG(info.st_mode)) throw std::runtime_error(path + ": not a regular file");
    size_ = static_cast<size_t>(info.st_size);
    if (size_ == 0) return;
    void* mapping = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (mapping == MAP_FAILED) fail(path, "cannot map", errno);
    data_ = static_cast<const uint8_t*>(mapping);
    madvise(mapping, size_, MADV_SEQUENTIAL);
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

void MappedFile::release(size_t offset, size_t bytes) const noexcept {
    if (data_ == nullptr || offset >= size_) return;
    if (bytes > size_ - offset) bytes = size_ - offset;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t first = (offset + page - 1) / page * page;
    const size_t last = (offset + bytes) / page * page;
    if (first < last) madvise(const_cast<uint8_t*>(data_) + first, last - first, MADV_DONTNEED);
}

void MappedFile::keep(size_t offset, size_t bytes) const noexcept {
    if (data_ == nullptr || offset >= size_) return;
    if (bytes > size_ - offset) bytes = size_ - offset;
    const size_t before = offset % static_cast<size_t>(sysconf(_SC_PAGESIZE));
    uint8_t* start = const_cast<uint8_t*>(data_) + offset - before;
    madvise(start, bytes + before, MADV_NORMAL);
    madvise(start, bytes + before, MADV_WILLNEED);
}

void MappedFile::populate(size_t offset, size_t bytes) const noexcept {
    if (data_ == nullptr || offset >= size_) return;
    if (bytes > size_ - offset) bytes = size_ - offset;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t before = offset % page;
    const uint8_t* start = data_ + offset - before;
    bytes += before;
#ifdef MADV_POPULATE_READ
    if (madvise(const_cast<uint8_t*>(start), bytes, MADV_POPULATE_READ) == 0) return;
#endif
    // Linux before 5.14, and others.
    for (size_t at = 0; at < bytes; at += page) static_cast<void>(*static_cast<const volatile uint8_t*>(start + at));
}

}  // namespace octavo
