// Tokens to nodes, second half: Jinja's statements.
#pragma once

#include "expressions.hpp"

#include <initializer_list>

namespace nihao::jinja {

namespace detail {

class Parser : ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  [[nodiscard]] Expected<Template> run() {
    NIHAO_TRY(out_.body, body({}, ""));
    return std::move(out_);
  }

 private:
  using Body = std::vector<NodeId>;

  /// Statements up to a block whose name is one of `ends`, which stays the current token (its block_begin is passed).
  [[nodiscard]] Expected<Body> body(std::initializer_list<std::string_view> ends, std::string_view tag) {
    const Deeper deeper(*this);
    NIHAO_CHECK(check_depth());
    Body out;
    for (;;) {
      if (is(TokenKind::end)) {
        if (ends.size() == 0) return out;
        std::string names;
        for (const std::string_view end : ends) names += concat(names.empty() ? "'" : " or '", end, "'");
        return fail(concat("Unexpected end of template. Jinja was looking for the following tags: ", names,
                           ". The innermost block that needs to be closed is '", tag, "'."));
      }
      if (is(TokenKind::text)) {
        out.push_back(make(NodeKind::output, {}, now().text));
        pass();
      } else if (is(TokenKind::print_begin)) {
        pass();
        NIHAO_TRY(const NodeId value, tuple());
        out.push_back(make(NodeKind::print, {value}));
        if (!is(TokenKind::print_end)) return expected("end of print statement");
        pass();
      } else {
        pass();
        if (is(TokenKind::name) && std::find(ends.begin(), ends.end(), now().text) != ends.end()) return out;
        NIHAO_TRY(const NodeId made, statement());
        out.push_back(made);
      }
    }
  }
  /// A body that begins after this block's end and ends with `{% end %}`.
  [[nodiscard]] Expected<Body> closed_body(std::string_view end, std::string_view tag) {
    NIHAO_CHECK(need_block_end());
    NIHAO_TRY(Body made, body({end}, tag));
    pass();
    NIHAO_CHECK(need_block_end());
    return made;
  }

  [[nodiscard]] Id statement() {
    if (!is(TokenKind::name)) return fail("tag name expected");
    const std::string tag = now().text;
    if (tag == "if") return branch();
    pass();
    if (tag == "for") return loop();
    if (tag == "set") return set();
    if (tag == "macro") return macro();
    if (tag == "call") return call_block();
    if (tag == "filter") return filter_block();
    if (tag == "with") return with();
    if (tag == "print") return print();
    if (tag == "block") return block();
    if (tag == "autoescape") return autoescape();
    if (tag == "generation") {
      const NodeId id = make(NodeKind::scope);
      NIHAO_TRY(Body made, closed_body("endgeneration", tag));
      out_.nodes[id].bodies.push_back(std::move(made));
      return id;
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) return fail(concat("'", tag, "' outside loop"));
      const NodeId id = make(tag == "break" ? NodeKind::break_ : NodeKind::continue_);
      NIHAO_CHECK(need_block_end());
      return id;
    }
    if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
      while (!is(TokenKind::block_end) && !is(TokenKind::end)) pass();
      const NodeId id = make(NodeKind::refuse, {}, "no loader for this environment specified");
      NIHAO_CHECK(need_block_end());
      return id;
    }
    return fail(concat("Encountered unknown tag '", printable(tag), "'."));
  }

  [[nodiscard]] Id branch() {
    const NodeId id = make(NodeKind::branch);
    ++conditional_;
    for (;;) {
      pass();  // if, elif
      NIHAO_TRY(const NodeId condition, tuple(false));
      NIHAO_CHECK(need_block_end());
      NIHAO_TRY(Body then, body({"elif", "else", "endif"}, "if"));
      out_.nodes[id].kids.push_back(condition);
      out_.nodes[id].bodies.push_back(std::move(then));
      if (is_name("elif")) continue;
      if (take_name("else")) {
        NIHAO_CHECK(need_block_end());
        NIHAO_TRY(Body otherwise, body({"endif"}, "if"));
        out_.nodes[id].bodies.push_back(std::move(otherwise));
      }
      pass();
      NIHAO_CHECK(need_block_end());
      --conditional_;
      return id;
    }
  }

  [[nodiscard]] Id loop() {
    const NodeId id = make(NodeKind::loop);
    NIHAO_TRY(const NodeId to, target(false));
    if (!take_name("in")) return expected("in");
    NIHAO_TRY(const NodeId over, tuple(false));
    NodeId test = 0;
    if (take_name("if")) { NIHAO_TRY(test, expression()); }
    const bool recursive = take_name("recursive");
    NIHAO_CHECK(need_block_end());
    ++loops_;
    NIHAO_TRY(Body each, body({"endfor", "else"}, "for"));
    --loops_;
    Body otherwise;
    if (take_name("else")) {
      NIHAO_CHECK(need_block_end());
      NIHAO_TRY(otherwise, body({"endfor"}, "for"));
    }
    pass();
    NIHAO_CHECK(need_block_end());
    Ast& node = out_.nodes[id];
    node.kids = {to, over, test};
    node.ops = {recursive ? Op::add : Op::none};
    node.bodies = {std::move(each), std::move(otherwise)};
    return id;
  }

  /// What can be assigned to: a name, names in a row, or (if `member`) a namespace's member.
  [[nodiscard]] Id target(bool member, bool single = false) {
    const Deeper deeper(*this);
    NIHAO_CHECK(check_depth());
    std::vector<NodeId> parts;
    bool many = false;
    for (;;) {
      if (take_op("(")) {
        NIHAO_TRY(const NodeId inner, target(false));
        NIHAO_CHECK(need_op(")"));
        parts.push_back(inner);
      } else {
        NIHAO_TRY(const std::string name, need_name());
        if (name == "true" || name == "false" || name == "none" || name == "True" || name == "False" || name == "None") {
          return fail(concat("can't assign to '", name, "'"));
        }
        if (member && parts.empty() && take_op(".")) {
          NIHAO_TRY(std::string attribute, need_name());
          const NodeId id = make(NodeKind::set_member, {}, std::move(attribute));
          out_.nodes[id].symbol = intern(name);
          parts.push_back(id);
        } else {
          parts.push_back(make_name(name));
        }
      }
      if (single || !take_op(",")) break;
      many = true;
      if (is_op("=") || is_name("in") || is_op(")") || is(TokenKind::block_end)) break;
    }
    return many ? make(NodeKind::tuple, std::move(parts)) : parts.front();
  }

  [[nodiscard]] Id set() {
    NIHAO_TRY(const NodeId to, target(true));
    if (take_op("=")) {
      NIHAO_TRY(const NodeId value, tuple());
      const NodeId id = make(NodeKind::set, {to, value});
      NIHAO_CHECK(need_block_end());
      return id;
    }
    NodeId through = 0;
    if (is_op("|")) { NIHAO_TRY(through, filters(0)); }
    const NodeId id = make(NodeKind::set_block, {to, through});
    NIHAO_TRY(Body made, closed_body("endset", "set"));
    out_.nodes[id].bodies.push_back(std::move(made));
    return id;
  }

  // `(a, b=1)`: parameter names into kids, defaults into arguments.
  [[nodiscard]] Expected<void> signature(NodeId id) {
    NIHAO_CHECK(need_op("("));
    std::vector<NodeId> parameters;
    std::vector<Argument> defaults;
    while (!is_op(")")) {
      if (!parameters.empty()) NIHAO_CHECK(need_op(","));
      NIHAO_TRY(const std::string name, need_name());
      parameters.push_back(make_name(name));
      if (take_op("=")) {
        NIHAO_TRY(const NodeId value, expression());
        defaults.push_back({Argument::Kind::named, name, value});
      } else if (!defaults.empty()) {
        return fail("non-default argument follows default argument");
      }
    }
    pass();
    out_.nodes[id].kids = std::move(parameters);
    out_.nodes[id].arguments = std::move(defaults);
    return {};
  }

  [[nodiscard]] Expected<void> macro_body(NodeId id, std::string_view end, std::string_view tag) {
    const auto loops = std::exchange(loops_, 0u);
    macros_.emplace_back();
    NIHAO_TRY(Body made, closed_body(end, tag));
    out_.nodes[id].specials = macros_.back();
    macros_.pop_back();
    loops_ = loops;
    out_.nodes[id].bodies.push_back(std::move(made));
    return {};
  }

  [[nodiscard]] Id macro() {
    NIHAO_TRY(const std::string name, need_name());
    const NodeId id = make(NodeKind::macro, {}, name);
    out_.nodes[id].symbol = intern(name);
    NIHAO_CHECK(signature(id));
    NIHAO_CHECK(macro_body(id, "endmacro", "macro"));
    return id;
  }

  [[nodiscard]] Id call_block() {
    const NodeId caller = make(NodeKind::macro, {}, "caller");
    out_.nodes[caller].symbol = intern("caller");
    if (is_op("(")) NIHAO_CHECK(signature(caller));
    NIHAO_TRY(const NodeId called, expression());
    if (out_.nodes[called].kind != NodeKind::call) return fail("expected call");
    NIHAO_CHECK(macro_body(caller, "endcall", "call"));
    return make(NodeKind::call_block, {called, caller});
  }

  [[nodiscard]] Id filter_block() {
    NIHAO_TRY(const NodeId through, filters(0, true));
    const NodeId id = make(NodeKind::filter_block, {through});
    NIHAO_TRY(Body made, closed_body("endfilter", "filter"));
    out_.nodes[id].bodies.push_back(std::move(made));
    return id;
  }

  [[nodiscard]] Id with() {
    const NodeId id = make(NodeKind::scope);
    std::vector<NodeId> pairs;
    while (!is(TokenKind::block_end)) {
      if (!pairs.empty()) NIHAO_CHECK(need_op(","));
      NIHAO_TRY(const NodeId to, target(false, true));
      NIHAO_CHECK(need_op("="));
      NIHAO_TRY(const NodeId value, expression());
      pairs.insert(pairs.end(), {to, value});
    }
    NIHAO_TRY(Body made, closed_body("endwith", "with"));
    out_.nodes[id].kids = std::move(pairs);
    out_.nodes[id].bodies.push_back(std::move(made));
    return id;
  }

  [[nodiscard]] Id print() {
    const NodeId id = make(NodeKind::print);
    while (!is(TokenKind::block_end)) {
      if (!out_.nodes[id].kids.empty()) NIHAO_CHECK(need_op(","));
      NIHAO_TRY(const NodeId value, expression());
      out_.nodes[id].kids.push_back(value);
    }
    pass();
    return id;
  }

  /// Escaping is off, and stays so: to turn it on is refused when it is reached.
  [[nodiscard]] Id autoescape() {
    NIHAO_TRY(const NodeId value, expression());
    const Ast& given = out_.nodes[value];
    const bool off = given.kind == NodeKind::constant && given.value.is(Kind::boolean) && !given.value.boolean();
    const NodeId id = make(off ? NodeKind::scope : NodeKind::refuse, {}, "autoescape is not supported");
    NIHAO_TRY(Body made, closed_body("endautoescape", "autoescape"));
    out_.nodes[id].bodies.push_back(std::move(made));
    return id;
  }

  [[nodiscard]] Id block() {
    NIHAO_TRY(const std::string name, need_name());
    const NodeId id = make(NodeKind::scope);
    NIHAO_CHECK(need_block_end());
    NIHAO_TRY(Body made, body({"endblock"}, "block"));
    pass();
    take_name(name);
    NIHAO_CHECK(need_block_end());
    out_.nodes[id].bodies.push_back(std::move(made));
    return id;
  }

  std::uint32_t loops_ = 0;  // how many loops this is inside of
};

}  // namespace detail

/// Errors: malformed (with the line), limit (nested deeper than max_depth).
[[nodiscard]] inline Expected<Template> parse_template(std::string_view source, std::uint32_t max_depth = 200) {
  NIHAO_TRY(auto tokens, tokenize_template(source));
  return detail::Parser(std::move(tokens), max_depth).run();
}

}  // namespace nihao::jinja
