#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace octavo {

/// A whole file mapped read-only. The mapping lives as long as the object; the descriptor is closed at once. Reading what is no
/// longer in the file ends the process (`watch_mapping`).
class MappedFile {
public:
    /// Throws std::runtime_error with the path and the system's reason.
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const std::string& path() const { return path_; }
    /// Null when the file is empty.
    const uint8_t* data() const { return data_; }
    size_t size() const { return size_; }

    /// Tells the system that a range has been read and need not stay resident. Reading it again is allowed.
    void release(size_t offset, size_t bytes) const noexcept;

    /// Tells the system that a range is wanted now and will be read again and again.
    void keep(size_t offset, size_t bytes) const noexcept;

    /// Brings a range into memory and maps its pages, so that nobody who reads it waits for them one by one.
    void populate(size_t offset, size_t bytes) const noexcept;

private:
    struct Pages {
        uint8_t* start;
        size_t bytes;
    };
    /// The pages that a range touches, as far as the file goes; none where it begins behind the file's end.
    Pages pages_of(size_t offset, size_t bytes) const noexcept;

    std::string path_;
    const uint8_t* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace octavo
