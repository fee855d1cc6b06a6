#pragma once
#include <cstddef>

namespace octavo {

/// Exit status after a read of a mapped file that was truncated or whose disk failed: EX_IOERR of sysexits.h.
constexpr int kLostFileStatus = 74;

/// From now on until `unwatch_mapping`, a read behind the end of this mapping ends the process with `kLostFileStatus` and a line on
/// standard error that names the file; `path` must live as long. Mappings beyond a fixed number are not watched.
void watch_mapping(const void* start, size_t bytes, const char* path);
void unwatch_mapping(const void* start);

/// While on, a signal that a fault of this process raises (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP) appends the line
/// `fault NAME` to the descriptor before its former handler runs, and `survived NAME` if that returns. Lost mapped files are no fault.
/// False when too many descriptors are recorded to.
bool record_faults(int descriptor, bool on);

}  // namespace octavo
