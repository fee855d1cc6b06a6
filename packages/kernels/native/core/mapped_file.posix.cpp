#include "mapped_file.h"

#include "fatal_signals.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace octavo {

namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
    throw std::runtime_error(path + ": " + what + ": " + std::strerror(error));
}

size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

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
    watch_mapping(mapping, size_, path_.c_str());
}

MappedFile::~MappedFile() {
    if (data_ == nullptr) return;
    unwatch_mapping(data_);
    munmap(const_cast<uint8_t*>(data_), size_);
}

void MappedFile::release(size_t offset, size_t bytes) const noexcept {
    if (data_ == nullptr || offset >= size_) return;
    if (bytes > size_ - offset) bytes = size_ - offset;
    const size_t page = page_size();
    const size_t first = (offset + page - 1) / page * page;
    const size_t last = (offset + bytes) / page * page;
    if (first < last) madvise(const_cast<uint8_t*>(data_) + first, last - first, MADV_DONTNEED);
}

MappedFile::Pages MappedFile::pages_of(size_t offset, size_t bytes) const noexcept {
    if (data_ == nullptr || offset >= size_) return {nullptr, 0};
    const size_t before = offset % page_size();
    return {const_cast<uint8_t*>(data_) + offset - before, std::min(bytes, size_ - offset) + before};
}

void MappedFile::keep(size_t offset, size_t bytes) const noexcept {
    const Pages pages = pages_of(offset, bytes);
    if (pages.bytes == 0) return;
    madvise(pages.start, pages.bytes, MADV_NORMAL);
    madvise(pages.start, pages.bytes, MADV_WILLNEED);
}

void MappedFile::populate(size_t offset, size_t bytes) const noexcept {
    const Pages pages = pages_of(offset, bytes);
    if (pages.bytes == 0) return;
#ifdef MADV_POPULATE_READ
    if (madvise(pages.start, pages.bytes, MADV_POPULATE_READ) == 0) return;
#endif
    // Linux before 5.14, and others.
    const size_t page = page_size();
    for (size_t at = 0; at < pages.bytes; at += page) static_cast<void>(*static_cast<const volatile uint8_t*>(pages.start + at));
}

}  // namespace octavo
