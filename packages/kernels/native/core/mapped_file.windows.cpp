#include <windows.h>

#include <algorithm>
#include <stdexcept>

#include "fatal_signals.h"
#include "mapped_file.h"

namespace octavo {

namespace {

[[noreturn]] void fail(const std::string& path, const char* what, DWORD error) {
    throw std::runtime_error(path + ": " + what + ": Windows error " + std::to_string(error));
}

/// Node's paths are UTF-8.
std::wstring wide(const std::string& text) {
    const int units = MultiByteToWideChar(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), nullptr, 0);
    std::wstring result(static_cast<size_t>(units), L'\0');
    MultiByteToWideChar(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), result.data(), units);
    return result;
}

struct Handle {
    HANDLE handle;
    ~Handle() {
        if (handle != nullptr && handle != INVALID_HANDLE_VALUE) CloseHandle(handle);
    }
};

size_t page_size() {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
    const Handle file{CreateFileW(wide(path).c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                  OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr)};
    if (file.handle == INVALID_HANDLE_VALUE) fail(path, "cannot open", GetLastError());
    if (GetFileType(file.handle) != FILE_TYPE_DISK) throw std::runtime_error(path + ": not a regular file");
    LARGE_INTEGER size;
    if (!GetFileSizeEx(file.handle, &size)) fail(path, "cannot stat", GetLastError());
    size_ = static_cast<size_t>(size.QuadPart);
    if (size_ == 0) return;
    const Handle section{CreateFileMappingW(file.handle, nullptr, PAGE_READONLY, 0, 0, nullptr)};
    if (section.handle == nullptr) fail(path, "cannot map", GetLastError());
    // The view keeps file and section alive.
    void* mapping = MapViewOfFile(section.handle, FILE_MAP_READ, 0, 0, 0);
    if (mapping == nullptr) fail(path, "cannot map", GetLastError());
    data_ = static_cast<const uint8_t*>(mapping);
    watch_mapping(mapping, size_, path_.c_str());
}

MappedFile::~MappedFile() {
    if (data_ == nullptr) return;
    unwatch_mapping(data_);
    UnmapViewOfFile(data_);
}

void MappedFile::release(size_t offset, size_t bytes) const noexcept {
    const Pages pages = pages_of(offset, bytes);
    // Unlocking pages that are not locked takes them out of the working set.
    if (pages.bytes > 0) VirtualUnlock(pages.start, pages.bytes);
}

MappedFile::Pages MappedFile::pages_of(size_t offset, size_t bytes) const noexcept {
    if (data_ == nullptr || offset >= size_) return {nullptr, 0};
    const size_t before = offset % page_size();
    return {const_cast<uint8_t*>(data_) + offset - before, std::min(bytes, size_ - offset) + before};
}

void MappedFile::keep(size_t offset, size_t bytes) const noexcept {
    const Pages pages = pages_of(offset, bytes);
    if (pages.bytes == 0) return;
    WIN32_MEMORY_RANGE_ENTRY range{pages.start, pages.bytes};
    PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0);
}

void MappedFile::populate(size_t offset, size_t bytes) const noexcept {
    keep(offset, bytes);
    const Pages pages = pages_of(offset, bytes);
    const size_t page = page_size();
    for (size_t at = 0; at < pages.bytes; at += page) static_cast<void>(*static_cast<const volatile uint8_t*>(pages.start + at));
}

}  // namespace octavo
