// What the program says: results on stdout, everything else on stderr.
#pragma once

#include <string_view>

#include "base/json_fwd.h"
#include "blockdraft/result.h"

namespace blockdraft {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// Writes to stdout at once. When nobody reads it any more (`| head`) the process ends quietly; any other failure ends
// it with a message: results that are lost must not look delivered.
void write_out(std::string_view text);
void write_error(std::string_view text);  // to stderr, as it is

void write_json(const Json& value);  // one line on stdout; bytes that are not UTF-8 become U+FFFD

// Text for people: to stdout, or to stderr when stdout carries JSON.
void write_human(bool json, std::string_view text);

bool stdout_is_terminal();

// "blockdraft: MESSAGE", with what to do about it where the kind of error tells. Returns the exit status.
int report_error(const Error& error);

}  // namespace blockdraft
