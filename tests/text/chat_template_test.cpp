#include "text/chat_data.hpp"

#include <doctest/doctest.h>
#include <map>
#include <thread>

using namespace nihao;

TEST_CASE("every conversation through every reference template gives the reference text, or its error") {
  const auto folder = test::data("text/chat");
  if (!folder) NIHAO_SKIP("text/chat");
  std::map<std::string, std::string> failing;
  std::size_t templates = 0, cases = 0;
  for (const auto& file : std::filesystem::directory_iterator(*folder)) {
    if (file.path().extension() != ".json") continue;
    ++templates;
    const auto json = test::Json::parse(test::read_text(file.path()));
    const auto chat = ChatTemplate::parse(test::read_text(*folder / json.at("template").get<std::string>()));
    for (const auto& c : json.at("cases")) {
      ++cases;
      const std::string failure = test::failure_of(chat, c.at("context"), c, json.at("now"));
      if (!failure.empty()) failing[file.path().stem().string() + " " + c.at("name").get<std::string>()] = failure;
    }
  }
  for (const auto& [name, failure] : failing) MESSAGE(name << ": " << failure);
  CHECK(failing.empty());
  CHECK(templates == 28);
  CHECK(cases == 588);
}

TEST_CASE("a plain conversation is rendered without building a context") {
  const auto chat = ChatTemplate::parse(
                        "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m['content'] }}{{ eos_token }}\n{% endfor %}\n"
                        "{% if add_generation_prompt %}<assistant>{% endif %}{% if tools %}tools{% endif %}")
                        .value();
  const std::vector<Message> messages{{"user", "你好,llama"}, {"assistant", "{{ hi }}"}};
  CHECK(chat.render(messages, true, "<s>", "</s>").value() == "<s><user>你好,llama</s>\n<assistant>{{ hi }}</s>\n<assistant>");
  CHECK(chat.render(messages, false, "", "").value() == "<user>你好,llama\n<assistant>{{ hi }}\n");
  CHECK(chat.render({}, false, "", "").value() == "");
}

TEST_CASE("a refused conversation is an error with the template's own words, never a prompt") {
  const auto chat = ChatTemplate::parse(
                        "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
                        "{{ raise_exception('Conversation roles must alternate') }}{% endif %}{{ m.content }}{% endfor %}")
                        .value();
  const std::vector<Message> twice{{"user", "a"}, {"user", "b"}};
  const Error error = chat.render(twice, true, "", "").error();
  CHECK(error.code == ErrorCode::template_error);
  CHECK(error.what == "Conversation roles must alternate");
  CHECK(chat.render(std::vector<Message>{{"user", "a"}}, true, "", "").value() == "a");
}

TEST_CASE("eos follows every message where the template says so") {
  const auto chat =
      ChatTemplate::parse(
          "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + "
          "eos_token }}\n{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + "
          "eos_token }}\n{% endif %}\n{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n"
          "{% endif %}\n{% endfor %}")
          .value();
  const std::vector<Message> messages{{"user", "a"}, {"assistant", "b"}, {"user", "c"}};
  CHECK(chat.render(messages, true, "<s>", "</s>").value() ==
        "<|user|>\na</s>\n<|assistant|>\nb</s>\n<|user|>\nc</s>\n<|assistant|>\n");
}

TEST_CASE("one template renders in several threads at once") {
  const auto chat =
      ChatTemplate::parse("{% macro m(x) %}{{ x.content | upper }}{% endmacro %}{% for x in messages %}{{ m(x) }}{% endfor %}")
          .value();
  using jinja::Value;
  std::vector<Value> turns(200, Value::dict({{"role", "user"}, {"content", "shared"}}));
  const Value context = Value::dict({{"messages", Value::list(std::move(turns))}});
  std::vector<std::string> out(4);
  std::vector<std::thread> threads;
  for (std::string& text : out) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) text = chat.render(context).value_or("failed");
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& text : out) CHECK(text.size() == 1200);
}
