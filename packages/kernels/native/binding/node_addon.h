#pragma once

// A worker thread may be terminated in the middle of a call into the addon; what then cannot be thrown is dropped.
#define NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS
#include <napi.h>
