// A parsed template: nodes in one array, which refer to each other by index.
#pragma once

#include "value.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace nihao::jinja {

using NodeId = std::uint32_t;  ///< 0 is no node
using Symbol = std::uint32_t;  ///< an index into Template::names

/// What a node is. The comment says which fields it uses.
enum class NodeKind : std::uint8_t {
  // Expressions
  constant,     ///< value
  name,         ///< symbol, text
  list,         ///< kids
  tuple,        ///< kids
  dict,         ///< kids: key, value, key, value, ...
  attribute,    ///< kids[0].text
  item,         ///< kids[0][kids[1]]
  slice,        ///< kids[0][kids[1]:kids[2]:kids[3]], any of the last three may be 0
  call,         ///< kids[0](arguments)
  filter,       ///< kids[0] | text(arguments); kids[0] is 0 in a filter block: its body's text
  test,         ///< kids[0] is text(arguments)
  negate,       ///< -kids[0]
  plus,         ///< +kids[0]
  invert,       ///< not kids[0]
  arithmetic,   ///< kids[0] ops[0] kids[1] ops[1] kids[2] ..., from the left
  compare,      ///< the same, as Python chains comparisons
  all,          ///< kids joined by `and`
  any,          ///< kids joined by `or`
  concat,       ///< kids joined by `~`
  conditional,  ///< kids[1] if kids[0] else kids[2] (0: undefined)
  // Statements
  output,        ///< text
  print,         ///< kids, one after the other
  branch,        ///< kids[i] is the condition of bodies[i]; one body more is the `else`
  loop,          ///< for kids[0] in kids[1] if kids[2]: bodies[0] else bodies[1]; ops[0]: recursive
  set,           ///< kids[0] = kids[1]
  set_block,     ///< kids[0] = the text of bodies[0], through the filter kids[1] (0: none)
  set_member,    ///< a target: symbol.text
  macro,         ///< symbol, text; kids: parameters (names); arguments: their defaults from the right; bodies[0]
  call_block,    ///< the call kids[0] with a caller: a macro, kids[1]
  filter_block,  ///< the filter kids[0] on the text of bodies[0]
  scope,         ///< bodies[0] in a scope of its own; kids: target, value, ... of a `with`
  break_,
  continue_,
  refuse,  ///< an error when it is reached: text
};

/// Operators of `arithmetic` and `compare`.
enum class Op : std::uint8_t { add, sub, mul, div, floor_div, mod, pow, eq, ne, lt, le, gt, ge, in, not_in, none };

struct Argument {
  enum class Kind : std::uint8_t { positional, named, unpack_list, unpack_dict } kind;
  std::string name;
  NodeId value;
};

/// The names that a macro gets only if it uses them.
struct Specials {
  bool caller = false, varargs = false, kwargs = false;
};

struct Ast {
  NodeKind kind;
  bool conditional = false;  // inside an `if`: an unknown filter there is an error only when it runs, as in Jinja
  std::uint32_t line = 0;
  Symbol symbol = 0;
  Specials specials = {};         // of a macro
  const void* builtin = nullptr;  // of a filter or test, once looked up
  std::string text = {};
  Value value = {};
  std::vector<NodeId> kids = {};
  std::vector<Op> ops = {};
  std::vector<Argument> arguments = {};
  std::vector<std::vector<NodeId>> bodies = {};
};

/// A template's nodes and names.
struct Template {
  std::string source;
  std::vector<Ast> nodes;
  std::vector<std::string> names;
  std::vector<NodeId> body;
};

}  // namespace nihao::jinja
