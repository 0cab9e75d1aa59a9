// Tokens to nodes, first half: Jinja's expressions, by recursive descent with a cap on how deep it goes.
#pragma once

#include "ast.hpp"
#include "lexer.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

namespace nihao::jinja::detail {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, std::uint32_t max_depth) : tokens_(std::move(tokens)), max_depth_(max_depth) {
    out_.nodes.push_back({.kind = NodeKind::constant});  // index 0 is "none"
  }

 protected:
  using Id = Expected<NodeId>;

  // Counts how deep the descent is. Every recursive rule holds one.
  struct Deeper {
    explicit Deeper(ExpressionParser& p) noexcept : depth(p.depth_) { ++depth; }
    ~Deeper() { --depth; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    std::uint32_t& depth;
  };
  [[nodiscard]] Expected<void> check_depth() const {
    if (depth_ <= max_depth_) return {};
    return Error{ErrorCode::limit, concat("nested deeper than ", max_depth_), line_of(now().line)};
  }

  // The token stream. The last token is `end` and is never passed.
  [[nodiscard]] const Token& now() const noexcept { return tokens_[at_]; }
  [[nodiscard]] const Token& next_one() const noexcept { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void pass() noexcept { at_ += at_ + 1 < tokens_.size(); }
  [[nodiscard]] bool is(TokenKind kind) const noexcept { return now().kind == kind; }
  [[nodiscard]] bool is_op(std::string_view op) const noexcept { return is(TokenKind::op) && now().text == op; }
  [[nodiscard]] bool is_name(std::string_view name) const noexcept { return is(TokenKind::name) && now().text == name; }
  bool take_op(std::string_view op) noexcept { return is_op(op) && (pass(), true); }
  bool take_name(std::string_view name) noexcept { return is_name(name) && (pass(), true); }

  [[nodiscard]] static std::string describe(const Token& token) {
    switch (token.kind) {
      case TokenKind::text: return "template data / text";
      case TokenKind::print_begin: return "begin of print statement";
      case TokenKind::print_end: return "end of print statement";
      case TokenKind::block_begin: return "begin of statement block";
      case TokenKind::block_end: return "end of statement block";
      case TokenKind::end: return "end of template";
      default: return printable(token.text);
    }
  }
  [[nodiscard]] Error fail(std::string_view what) const { return Error{ErrorCode::malformed, what, line_of(now().line)}; }
  [[nodiscard]] Error expected(std::string_view what) const {
    if (is(TokenKind::end)) return fail(concat("unexpected end of template, expected '", what, "'."));
    return fail(concat("expected token '", what, "', got '", describe(now()), "'"));
  }
  [[nodiscard]] Expected<void> need_op(std::string_view op) {
    if (!take_op(op)) return expected(op);
    return {};
  }
  [[nodiscard]] Expected<void> need_block_end() {
    if (!is(TokenKind::block_end)) return expected("end of statement block");
    pass();
    return {};
  }
  [[nodiscard]] Expected<std::string> need_name() {
    if (!is(TokenKind::name)) return expected("name");
    std::string name = now().text;
    pass();
    return name;
  }

  // Making nodes.
  [[nodiscard]] NodeId make(NodeKind kind, std::vector<NodeId> kids = {}, std::string text = {}) {
    out_.nodes.push_back(
        {.kind = kind, .conditional = conditional_ > 0, .line = now().line, .text = std::move(text), .kids = std::move(kids)});
    return static_cast<NodeId>(out_.nodes.size() - 1);
  }
  [[nodiscard]] NodeId make_constant(Value value) {
    const NodeId id = make(NodeKind::constant);
    out_.nodes[id].value = std::move(value);
    return id;
  }
  [[nodiscard]] NodeId make_name(const std::string& name) {
    const NodeId id = make(NodeKind::name, {}, name);
    out_.nodes[id].symbol = intern(name);
    for (Specials& inside : macros_) {
      inside.caller |= name == "caller";
      inside.varargs |= name == "varargs";
      inside.kwargs |= name == "kwargs";
    }
    return id;
  }
  [[nodiscard]] Symbol intern(const std::string& name) {
    const auto [at, fresh] = symbols_.try_emplace(name, static_cast<Symbol>(out_.names.size()));
    if (fresh) out_.names.push_back(name);
    return at->second;
  }

  // --------------------------------------------------------------------------------------------------------- expressions

  /// One expression, or several in a row, which are a tuple.
  [[nodiscard]] Id tuple(bool conditional = true, bool parenthesised = false) {
    std::vector<NodeId> parts;
    bool many = false;
    for (;;) {
      if (is(TokenKind::print_end) || is(TokenKind::block_end) || is_op(")") || is_name("recursive")) break;
      NIHAO_TRY(const NodeId part, conditional ? expression() : any());
      parts.push_back(part);
      if (!take_op(",")) break;
      many = true;
    }
    if (!many && !parts.empty()) return parts.front();
    if (!many && !parenthesised) {
      if (is(TokenKind::end)) return fail("unexpected end of template");
      return fail(concat("Expected an expression, got '", describe(now()), "'"));
    }
    return make(NodeKind::tuple, std::move(parts));
  }

  [[nodiscard]] Id expression() {
    const Deeper deeper(*this);
    NIHAO_CHECK(check_depth());
    const std::size_t first = out_.nodes.size();
    NIHAO_TRY(NodeId value, any());
    while (take_name("if")) {
      for (std::size_t i = first; i < out_.nodes.size(); ++i) out_.nodes[i].conditional = true;
      ++conditional_;
      NIHAO_TRY(const NodeId condition, any());
      NodeId otherwise = 0;
      if (take_name("else")) { NIHAO_TRY(otherwise, expression()); }
      --conditional_;
      value = make(NodeKind::conditional, {condition, value, otherwise});
    }
    return value;
  }

  // Operands of one level joined by operators: `rule (op rule)*`. One alone is itself.
  template <class Rule, class Operator>
  [[nodiscard]] Id chain(NodeKind kind, Rule rule, Operator take) {
    NIHAO_TRY(const NodeId first, (this->*rule)());
    std::vector<NodeId> kids{first};
    std::vector<Op> ops;
    for (Op op = take(); op != Op::none; op = take()) {
      NIHAO_TRY(const NodeId next, (this->*rule)());
      kids.push_back(next);
      ops.push_back(op);
    }
    if (kids.size() == 1) return first;
    const NodeId id = make(kind, std::move(kids));
    out_.nodes[id].ops = std::move(ops);
    return id;
  }
  [[nodiscard]] Id any() {
    return chain(NodeKind::any, &ExpressionParser::all, [&] { return take_name("or") ? Op::add : Op::none; });
  }
  [[nodiscard]] Id all() {
    return chain(NodeKind::all, &ExpressionParser::inverted, [&] { return take_name("and") ? Op::add : Op::none; });
  }
  [[nodiscard]] Id inverted() {
    bool not_ = false, seen = false;
    while (take_name("not")) not_ = !not_, seen = true;
    NIHAO_TRY(NodeId id, comparison());
    if (seen && !not_) id = make(NodeKind::invert, {id});
    return seen ? make(NodeKind::invert, {id}) : id;
  }
  [[nodiscard]] Id comparison() {
    return chain(NodeKind::compare, &ExpressionParser::sum, [&] {
      for (const auto& [text, op] :
           {std::pair{"==", Op::eq}, {"!=", Op::ne}, {"<", Op::lt}, {"<=", Op::le}, {">", Op::gt}, {">=", Op::ge}}) {
        if (take_op(text)) return op;
      }
      if (take_name("in")) return Op::in;
      if (is_name("not") && next_one().kind == TokenKind::name && next_one().text == "in") return pass(), pass(), Op::not_in;
      return Op::none;
    });
  }
  [[nodiscard]] Id sum() {
    return chain(NodeKind::arithmetic, &ExpressionParser::joined, [&] {
      return take_op("+") ? Op::add : take_op("-") ? Op::sub : Op::none;
    });
  }
  [[nodiscard]] Id joined() {
    return chain(NodeKind::concat, &ExpressionParser::product, [&] { return take_op("~") ? Op::add : Op::none; });
  }
  [[nodiscard]] Id product() {
    return chain(NodeKind::arithmetic, &ExpressionParser::power, [&] {
      return take_op("*") ? Op::mul : take_op("/") ? Op::div : take_op("//") ? Op::floor_div : take_op("%") ? Op::mod : Op::none;
    });
  }
  [[nodiscard]] Id power() {  // from the left, unlike Python
    return chain(NodeKind::arithmetic, &ExpressionParser::signed_, [&] { return take_op("**") ? Op::pow : Op::none; });
  }
  [[nodiscard]] Id signed_() { return unary(true); }

  /// A sign binds tighter than a filter: -1|abs is (-1)|abs.
  [[nodiscard]] Id unary(bool with_filters) {
    const Deeper deeper(*this);
    NIHAO_CHECK(check_depth());
    NodeId id = 0;
    if (is_op("-") || is_op("+")) {
      const NodeKind kind = is_op("-") ? NodeKind::negate : NodeKind::plus;
      pass();
      NIHAO_TRY(const NodeId inner, unary(false));
      id = make(kind, {inner});
    } else {
      NIHAO_TRY(id, primary());
    }
    NIHAO_TRY(id, postfix(id));
    if (!with_filters) return id;
    for (;;) {
      if (is_op("|")) {
        NIHAO_TRY(id, filters(id));
      } else if (take_name("is")) {
        NIHAO_TRY(id, test(id));
      } else if (is_op("(")) {
        NIHAO_TRY(id, call(id));
      } else {
        return id;
      }
    }
  }

  [[nodiscard]] Id primary() {
    const Token token = now();
    switch (token.kind) {
      case TokenKind::name:
        pass();
        if (token.text == "true" || token.text == "True") return make_constant(true);
        if (token.text == "false" || token.text == "False") return make_constant(false);
        if (token.text == "none" || token.text == "None") return make_constant(Value::none());
        return make_name(token.text);
      case TokenKind::string: {
        std::string text;
        for (; is(TokenKind::string); pass()) text += now().text;
        return make_constant(std::move(text));
      }
      case TokenKind::integer:
      case TokenKind::real: {
        pass();
        return number(token);
      }
      case TokenKind::op:
        if (take_op("(")) {
          NIHAO_TRY(const NodeId inner, tuple(true, true));
          NIHAO_CHECK(need_op(")"));
          return inner;
        }
        if (take_op("[")) return list();
        if (take_op("{")) return dict();
        return fail(concat("unexpected '", token.text, "'"));
      default: return fail(concat("unexpected '", describe(token), "'"));
    }
  }

  [[nodiscard]] Id number(const Token& token) {
    if (token.kind == TokenKind::real) {
      double value = 0;
      const auto [end, problem] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
      if (problem != std::errc{}) return fail(concat("the number ", token.text, " does not fit"));
      return make_constant(value);
    }
    Int value = 0;
    unsigned base = 10;
    std::string_view digits = token.text;
    if (digits.size() > 2 && digits[0] == '0' && digits[1] >= 'b') {
      base = digits[1] == 'x' ? 16 : digits[1] == 'o' ? 8 : 2;
      digits.remove_prefix(2);
    }
    for (const char c : digits) {
      const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
      if (__builtin_mul_overflow(value, static_cast<Int>(base), &value) ||
          __builtin_add_overflow(value, static_cast<Int>(digit), &value)) {
        return fail(concat("the number ", token.text, " does not fit"));
      }
    }
    return make_constant(value);
  }

  [[nodiscard]] Id list() {
    std::vector<NodeId> kids;
    while (!is_op("]")) {
      if (!kids.empty()) NIHAO_CHECK(need_op(","));
      if (is_op("]")) break;
      NIHAO_TRY(const NodeId kid, expression());
      kids.push_back(kid);
    }
    pass();
    return make(NodeKind::list, std::move(kids));
  }

  [[nodiscard]] Id dict() {
    std::vector<NodeId> kids;
    while (!is_op("}")) {
      if (!kids.empty()) NIHAO_CHECK(need_op(","));
      if (is_op("}")) break;
      NIHAO_TRY(const NodeId key, expression());
      NIHAO_CHECK(need_op(":"));
      NIHAO_TRY(const NodeId value, expression());
      kids.insert(kids.end(), {key, value});
    }
    pass();
    return make(NodeKind::dict, std::move(kids));
  }

  [[nodiscard]] Id postfix(NodeId id) {
    for (;;) {
      if (take_op(".")) {
        if (is(TokenKind::integer)) {
          NIHAO_TRY(const NodeId index, primary());
          id = make(NodeKind::item, {id, index});
        } else {
          NIHAO_TRY(std::string name, need_name());
          id = make(NodeKind::attribute, {id}, std::move(name));
        }
      } else if (take_op("[")) {
        NIHAO_TRY(id, subscript(id));
      } else if (is_op("(")) {
        NIHAO_TRY(id, call(id));
      } else {
        return id;
      }
    }
  }

  [[nodiscard]] Id subscript(NodeId of) {
    NodeId bounds[3] = {0, 0, 0};
    std::size_t part = 0;
    bool slice = false;
    std::vector<NodeId> several;
    while (!is_op("]")) {
      if (take_op(":")) {
        slice = true;
        if (++part > 2) return fail("unexpected ':'");
      } else if (take_op(",")) {
        if (slice) return fail("a slice among several subscripts is not supported");
        several.push_back(std::exchange(bounds[0], 0u));
        if (several.back() == 0) return fail("expected subscript expression");
      } else {
        if (bounds[part] != 0) return expected("]");
        NIHAO_TRY(bounds[part], expression());
      }
    }
    pass();
    if (slice) return make(NodeKind::slice, {of, bounds[0], bounds[1], bounds[2]});
    if (!several.empty()) {
      if (bounds[0] != 0) several.push_back(bounds[0]);
      bounds[0] = make(NodeKind::tuple, std::move(several));
    }
    if (bounds[0] == 0) return fail("expected subscript expression");
    return make(NodeKind::item, {of, bounds[0]});
  }

  [[nodiscard]] Expected<std::vector<Argument>> arguments() {
    NIHAO_CHECK(need_op("("));
    std::vector<Argument> out;
    bool named = false;
    while (!is_op(")")) {
      if (!out.empty()) NIHAO_CHECK(need_op(","));
      if (is_op(")")) break;
      Argument argument{Argument::Kind::positional, {}, 0};
      if (take_op("**")) {
        argument.kind = Argument::Kind::unpack_dict;
      } else if (take_op("*")) {
        argument.kind = Argument::Kind::unpack_list;
      } else if (is(TokenKind::name) && next_one().kind == TokenKind::op && next_one().text == "=") {
        argument.kind = Argument::Kind::named;
        argument.name = now().text;
        pass(), pass();
        named = true;
      } else if (named) {
        return fail("invalid syntax for function call expression");
      }
      NIHAO_TRY(argument.value, expression());
      out.push_back(std::move(argument));
    }
    pass();
    return out;
  }

  [[nodiscard]] Id call(NodeId callee) {
    const NodeId id = make(NodeKind::call, {callee});
    NIHAO_TRY(auto given, arguments());
    out_.nodes[id].arguments = std::move(given);
    return id;
  }

  /// `| name(arguments)`, any number of them. `first_is_bare`: the first has no bar before it (a filter block).
  [[nodiscard]] Id filters(NodeId input, bool first_is_bare = false) {
    while (std::exchange(first_is_bare, false) || take_op("|")) {
      NIHAO_TRY(std::string name, need_name());
      while (take_op(".")) {
        NIHAO_TRY(const std::string more, need_name());
        name += concat(".", more);
      }
      const NodeId id = make(NodeKind::filter, {input}, std::move(name));
      if (is_op("(")) {
        NIHAO_TRY(auto given, arguments());
        out_.nodes[id].arguments = std::move(given);
      }
      input = id;
    }
    return input;
  }

  /// After `is`: `[not] name`, with arguments in brackets or one without.
  [[nodiscard]] Id test(NodeId of) {
    const bool negated = take_name("not");
    NIHAO_TRY(std::string name, need_name());
    const NodeId id = make(NodeKind::test, {of}, std::move(name));
    const bool operand = is(TokenKind::string) || is(TokenKind::integer) || is(TokenKind::real) || is_op("[") || is_op("{") ||
                         (is(TokenKind::name) && !is_name("else") && !is_name("or") && !is_name("and"));
    if (is_op("(")) {
      NIHAO_TRY(auto given, arguments());
      out_.nodes[id].arguments = std::move(given);
    } else if (is_name("is")) {
      return fail("You cannot chain multiple tests with is");
    } else if (operand && !is_name("if") && !is_name("in") && !is_name("not") && !is_name("recursive")) {
      NIHAO_TRY(NodeId argument, primary());
      NIHAO_TRY(argument, postfix(argument));
      out_.nodes[id].arguments.push_back({Argument::Kind::positional, {}, argument});
    }
    return negated ? make(NodeKind::invert, {id}) : id;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t depth_ = 0;
  std::uint32_t max_depth_;
  std::uint32_t conditional_ = 0;
  std::vector<Specials> macros_;  // those this is inside of
  Template out_;
  std::unordered_map<std::string, Symbol> symbols_;
};

}  // namespace nihao::jinja::detail
