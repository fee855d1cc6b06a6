#pragma once
#include <cstddef>
#include <cstdint>

namespace octavo {

/// Exit status after a read of a mapped file that was truncated or whose disk failed: EX_IOERR of sysexits.h.
constexpr int kLostFileStatus = 74;

/// From now on until `unwatch_mapping`, a read behind the end of this mapping ends the process with `kLostFileStatus` and a line on
/// standard error that names the file; `path` must live as long. Mappings beyond a fixed number are not watched.
void watch_mapping(const void* start, size_t bytes, const char* path);
void unwatch_mapping(const void* start);
/// The watched file that is mapped at this address, by its path; nullptr where there is none. Takes no lock: handlers of signals ask.
const char* watched_file_at(uintptr_t address);
/// Of the system: ends the process when a read of a watched mapping fails. `watch_mapping` calls it, one thread at a time.
void handle_lost_files();

/// While on, a signal that a fault of this process raises (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP) appends the line
/// `fault NAME` to the descriptor before its former handler runs, and `survived NAME` if that returns. Lost mapped files are no fault.
/// False when too many descriptors are recorded to.
bool record_faults(int descriptor, bool on);

}  // namespace octavo
