#pragma once
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "check.h"

namespace octavo::test {

/// A file of these bytes that goes with its owner; what has mapped it keeps it.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& bytes) {
        const int fd = mkstemp(path_);
        CHECK(fd >= 0 && write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
        close(fd);
    }
    ~TemporaryFile() { unlink(path_); }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    std::string path() const { return path_; }

private:
    char path_[32] = "/tmp/octavo-native-test-XXXXXX";
};

}  // namespace octavo::test
