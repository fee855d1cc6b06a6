#pragma once
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace octavo::test {

inline int& num_failures() {
    static int failures = 0;
    return failures;
}

inline int& num_checks() {
    static int checks = 0;
    return checks;
}

inline void pass() { ++num_checks(); }

inline void fail(const std::string& what, const char* file, int line) {
    ++num_checks();
    ++num_failures();
    if (num_failures() <= 20) std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
}

/// The message of the exception that `body` throws, or nothing.
template <class Body>
std::string message_of(const Body& body) {
    try {
        body();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

/// Fewer and smaller cases, for sanitizer runs.
inline bool quick() {
    const char* value = std::getenv("OCTAVO_TEST_QUICK");
    return value != nullptr && *value != '\0';
}

/// Exit status of a test program.
inline int finish(const char* name) {
    std::fprintf(stderr, "%s: %d checks, %d failures\n", name, num_checks(), num_failures());
    return num_failures() == 0 && num_checks() > 0 ? 0 : 1;
}

}  // namespace octavo::test

/// `message` is made where the condition does not hold: checks are many.
#define CHECK_MESSAGE(condition, message) \
    ((condition) ? ::octavo::test::pass() : ::octavo::test::fail((message), __FILE__, __LINE__))
#define CHECK(condition) CHECK_MESSAGE(condition, #condition)
