#include <windows.h>

#include <cstring>

#include "fatal_signals.h"

namespace octavo {

namespace {

bool is_watching = false;

void write_error(const char* text) {
    DWORD written = 0;
    WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, static_cast<DWORD>(std::strlen(text)), &written, nullptr);
}

/// A page of a mapped file that cannot be read raises EXCEPTION_IN_PAGE_ERROR; its second parameter is the address.
LONG CALLBACK end_if_file_lost(EXCEPTION_POINTERS* exception) {
    const EXCEPTION_RECORD& record = *exception->ExceptionRecord;
    if (record.ExceptionCode != EXCEPTION_IN_PAGE_ERROR || record.NumberParameters < 2) return EXCEPTION_CONTINUE_SEARCH;
    const char* path = watched_file_at(record.ExceptionInformation[1]);
    if (path == nullptr) return EXCEPTION_CONTINUE_SEARCH;
    write_error("octavo: ");
    write_error(path);
    write_error(" was truncated, or its disk failed, while it was in use; the process ends\n");
    TerminateProcess(GetCurrentProcess(), kLostFileStatus);
    return EXCEPTION_CONTINUE_SEARCH;
}

}  // namespace

void handle_lost_files() {
    if (!is_watching) AddVectoredExceptionHandler(1, end_if_file_lost);
    is_watching = true;
}

// Nothing here can write to Node's descriptors, as `lock_open_file` says.
bool record_faults(int, bool on) { return !on; }

}  // namespace octavo
