#pragma once

// An enumeration and its enumerators' names, as one string with commas between them: what the TypeScript face compares with its own.
#define OCTAVO_ENUMERATION(Name, ...) \
    enum class Name { __VA_ARGS__ };  \
    constexpr const char* k##Name##Names = #__VA_ARGS__
