// The grids of the IQ formats: which points of a cube a code can name.
//
// Eight (or four) neighbouring weights are one point whose coordinates take three (or eight) values each. Of the 6561 (4096)
// points a format has room for some, chosen for how often they are met; its codes number those. The choice is data, ggml's
// (ggml-common.h); here each grid is the list of its points as numbers to the base 3 (8), coordinate 0 the lowest digit, written
// as the differences of neighbours, for they rise.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nihao {

namespace detail {

// Characters are differences: '#' is 0, and so on without '?' and the backslash; '~' is 89 and goes on to the next character.
template <std::size_t Points, std::uint32_t Levels, std::size_t Coordinates>
consteval std::array<std::uint16_t, Points> grid(std::string_view differences) {
  constexpr std::uint32_t bits = Levels == 3 ? 2 : 3;
  std::array<std::uint16_t, Points> points{};
  std::size_t n = 0;
  std::uint32_t point = 0;
  for (const char c : differences) {
    const auto difference = static_cast<std::uint32_t>(c - '#' - (c > '?' ? 1 : 0) - (c > '\\' ? 1 : 0));
    point += difference;
    if (difference == 89) continue;
    std::uint32_t packed = 0, rest = point;
    for (std::size_t i = 0; i < Coordinates; ++i, rest /= Levels) packed |= rest % Levels << bits * i;
    points[n++] = static_cast<std::uint16_t>(packed);
  }
  if (n != Points) __builtin_unreachable();  // which no constant expression reaches
  return points;
}

inline constexpr std::array<std::uint16_t, 256> iq2_xxs_grid = grid<256, 3, 8>(
    "#%%%%%%)%'%%%))'%)%)/+%)'1B//%5H=%)-%)%'/-%)/)%'/17%-;%5B5)'%)/'%)%9;;]-k%)-+5/)'1)/5+-T-V)/'/7NDF1i%)5@='iRP%)93+%V+T"
    "%u%)51L@7~*;/T~IX%))'%))+'-%)55@+';+;+-B)/H39-aw%)5'VN'-]D5)')%H);=Rku%;oJN-)Daas)5;BL]BH'{%R~Q~~H%)7@@//em%)'15HDF975"
    "Jw}o)/)R9L_V7-}~~%P~^F9Bo~*~~{T");

inline constexpr std::array<std::uint16_t, 512> iq2_xs_grid = grid<512, 3, 8>(
    "#%%%%%%%%%%%%'%%%%%%%'%)%%%'%'%-%%%%%%%%%%)%%%'%))'%)5%%%'%)-%)'1+7%%%%%%%'%)%%%'%%'-%)5%%%'%)-%)-+@%)1'%@;%%%%%%)')%)"
    ")/5+%%)5@)75)P'-%%%%%%%'%)%%%'%)+%%)5%%%'%)-%)5/%1%%'55H%%%'%)-%'%/)@%)5Z/9T%)%3/79'RiN%%%%%%%)-%)55-%)5)3D7F;'%)3%Z@-"
    "D/3a')%-971_/;/J'%7%%%%%%%'%)%%%%%%)')%)5%%%'%)-%)5'3+%)%1%Z%%%'%'%-%)5/3%)/)P-+9)R%)5'++F-7)3Ds%%%'%))'%)5@%)'1%XBV%%"
    ")-+5-5+)T)LD9+/3+F@-%~8;%)5/+/7%~01B31q5'P}XVeF+F%%%'%)+%%)5%9%%%%'5-)J5H%3)'%)%%1537BR7J@)39-%9+~*F)+-'%)513;7@o77'=)"
    ")eJ%P~$LJaDH%'%-+RR)F'%'7@5HL~[77-%'T))Z%R%J3");

inline constexpr std::array<std::uint16_t, 1024> iq2_s_grid = grid<1024, 3, 8>(
    "#%%%%%%%%%%%%'%%%%%%%'%%%%%%%'%)''%%%%%%%%'%)%%%'%%%%'%'%)%%)%)%%%'%)+%%%%%'1'''++%%%%%%%'%%%%%%%%%%%%%%%)%%%%'%'%)%%%"
    "%%%%%%'%'%%%%%%%'%)%%%'%)-%%%%'1'%'%)-%)5%%%'%%%%''%%%%%%%%'%)'+1%%)%%%'+'%'%)-+5-%+'%-F/%%%%%%%'%%'%%%'%%%%%%%'%%''%'"
    "%)%%%%%%%%%%%%'%%%%%%%'%)%%%'%3%'%')%)')%3%)5%%%'%%%%'%'%%%%%%%'%)%%%'%)-%%%%%%%'%)%%%'%)-%)5'%'%)-%)5=%%%%%'%'+%%%'%)"
    "-%;%%%'%)-%)39-)51L%%%'%%%%''%%)%%+)+'1%%)%%)+%%)%)-%)5+/'%');%3'%%%%'%'%)%%%'%)-%)5'%'%)-%)1'@%)53J')%3%)=5%%)_9/@/%7"
    "%%%%%%%%%%%'%%%%%%%%%%%)%)'%'%)%%%'%%%%%%)%%%%%%%'%)%%%'%)-%)%%%))'%'%)-%;%%%%%%%%%%%%'%%%%%%%'%)%%%'%)-%%%%%%%'%)%%%'"
    "%)+%%)5%%%'%)-%)59)%'%%%%'%)%%%'%)/)5%%%'%)-%)511%)5Z%%%'%%%%%%%'%%%%%%%'%)%%%'%3%%%%%%%'%)%%%'%)-%)5'%'%)-%)3%@%%%%%%"
    "%'%)%%%'%)-%)5%%%'%)-%)5@%)1'Z%%%'%)-%)+-@%)5Z3N7'%%'%%%'%)'%'%)/)5%%%'%)-%)531)51D+'%'%)-%)5@%)5+313g3%)L7/=yP+%%%'%'"
    "%')%)%%%'+')%3%'%%%%'%)%%%'%3%)3%''%%3%)R%%%%%%%'+%%%'%)-%)5%%%'%)-%)5+7%)3%Z')%3%)J+%;9X9%/5+%'%%%%))%%%'%)-%)5')%3%)"
    "+J%)5V'%%%'%)-%)511%)5N'+D3F%)1'X%F'~45'''+)%%)J)@9F)/'%B'%3'%)5F1)3~0X3VR7@%-%'H7");

inline constexpr std::array<std::uint16_t, 2048> iq1_grid = grid<2048, 3, 8>(
    "#%%%%%&(%'%()%%+(%'%((%'%'$)%%%$()'%'%'%%%$*)%%+(%'%((%'%())('%%'%%&&%%'%.%%+)))''$2)))%$$+%%+%''$$%$$%%%%%%%,&%%%%$$%"
    "1'/%)%%%&$'%))%'.%'%((%'%()'+(%'%((%'%()%'($)+$&)%'/%%%)(%'%((%'%())&&(%%%%((%'%-$%'($)%)'%'%$&/%%(&)%%%%%%%'%')'$$$$$"
    "$%%'++%)%3%%+((%'%%%'%+)%%+)'%($%$&'(&$$%%%$$%'%%)'%&$%$$%%$&'%'%%$$%%%%%%%%$$($$$$%$%%$$%%%$$%%$$%$$%$$%%)%$$+$$%%''%"
    "$$%%%&$$$&%$%$$)&&%+'/'+)%%%%'%%$$%%%))%-1%%'%&*$$%'%$$%$$''+&$%%''%,**%*%%%%%%''%))'&-%'%((%%%%())&&(%'%((%%%%()%')*$"
    "')%%%%$$+((%))(%%&(%'%()'%))(%%&(%'%(+%%)+$$%'%%%)+)%'&&/)))%'%'%$&'%%-%&$%%%%%%)(%())))($)(%'+-%'%((%'%()%-(%'%-%'%+&"
    "%')-%'%)%%%)((%($(%'%-%'%()'%)(%'%((%'%()'+/'%%%%%%3'&''$%%%'%$$%%'%)%%%%$$%$(%%%%%'%%($$.)%%+)-%''',(-)/&,)%%%%$$($%%"
    "%%'%%%%($)&$%'%%$$%%''%%$$%%$%$$$$&%$$%'$$%'%$$%$(%%%&&($%%%%'%%%%&$$%$%'%%'&''$)%%+)&'(*(%'%'%%%))%%%))&$&$&$%'%%'''%"
    "$$$$%%%%$&)%'%$$'%%%33%%)%%''1-)%$$%'%'%%'%'%'%$$%)%+%)%&$'%)%$$%%$$$$%'$$%%%$$%%$$$$$$$$%%$$%'%)%$$%%''%')%'%%+%'%%$$"
    "%'%,(%%&$',$)%$$$$&&%%%%$$%$$$%$$$$$%$$$$%%)%%%$$%&%$'%$$$$%%$$$$$%$%%$$%%$$$$$$$%$$$$$$$$$$%$$$$$%%$&$$$%$$$$&%$$%%$$"
    "$%$$&%$%$%$$$$$$$&&$$$$$$$$$$$$$%%$&'%$$$$%&'&%$$$($$%%'%'*(%%%%$$$$%%$$*(%%%%')&$%'%%$$%))%$$%%$$$$$$$$%%$$%&&&&%$$$$"
    ")+&*'$'$%)%$&&$$$'%%%%*&%$$%%/+%%)+)'$$%%%%%&0+)%%%'%)$&%)&&&$%)$&'(&%)'%/'%.$'+$$&0)'+2$%$&%'%%%%%%%%$$%$$%%+$&%%$$$$"
    "%%%')%%%&$%1$$%%$%$$%&%$$%*%$%&$%$&%$$(()(($$%'%%%%$$$%$'%&%%''%$$%&%&2%))-%'%)))(+(%)')%%%%$&$$'%$$%%''&$(()%$&/'$0%'"
    "%'%%'$&**&%)'%'%-%'%(($%%%)(%'%((%'%()%%%))%'%%%$$$(%%)&(%%)(%'%((%'%.%')(%'%((%'%0'/%*&'%%'1'/)'%')%%$&%'%$$%$($$%%%%"
    "%%%%%+1'%))%'$$'&$%'&()*')%'%((%'%%&)%')&%%'%((%'%($(%%+)%%%%%%'%%--%)(%'%((%'%()%%0%'%((%'%()'$$))'%)%%+$()%%%))%%%%'"
    "%%%%%%%'($%$$%'%+%)%%'%%%))%')+%%%%%%+%)+%.&%%''%+'+%%$$$$%$$%+%)$$%')%'%%$$%$$%&&&$%%$$%%$$$$$$$$%%$$%&&%'$$$$%$$%%%%"
    "%%)'&%(%)%$&$%$%)%($'$&$$+%%)-%))''%%$&'$,)'%)+%%%%%%%$$%%'%%%%%%$$%'%$&%%)%%'%'+,,+%%%'%'/)%$$0%'%((%'%()%%%.%'%((%'%"
    "(&&%%%$2%&&%%%%-(%&%0'%$*''%()'%)(%'%((%'%4))%)&$%%%&$$$)@%%%%%+%'%)%$$%)'%%$$%'%%3)'&%&+%&&%$$&%/''$%&%%'%'%-%'%.%%%."
    "%'%((%'%(+'&&)+''%'%.(0%'%-%'%.%%0%'%((%'%");

inline constexpr std::array<std::uint16_t, 256> iq3_xxs_grid = grid<256, 8, 4>(
    "#%%(%'$%*,<%'%(%*'&%*./+%%(*%*%'-)1')$%.G67(./%')63W:7'%813%(%*%(%%.$;%**%S%(%**F)%1,03.'GL'56/r1D%*%(%'&,C%%&%**>'$+%"
    "*)$%0$07*'P'E1;7->j%.:@*%*%80()%1,.%>%(08325b26))/>C58L87.1%/'r72$3)4BCI.E18r&%1V::+)3:C1D+MA.'G+:tP1V3%1ADBIH)kEIUL1V"
    "%%$53P-N>(9018E3C%5i");

inline constexpr std::array<std::uint16_t, 512> iq3_s_grid = grid<512, 8, 4>(
    "#$$&%$$$%%%$')(%&%%%(%*&&$$$%'$'&&'%'*0'()$'%$&&&'&')&%%%0&+)'&%*%&)'%0%'&.'%&))&)2-%/%'()'%2(.&%142*%%/%'(0'7$$%'$%%%"
    "$%*&%1%&,)$%&%'(*&)*%1)%-&%$'))&-&-*&&$&))$'(4).%(%0%*'%'8*&)*%2K'&0%>%(%*/'4)+$%%%$%%%&%'$%*%%&%0$&%&%)&'&&'&)*;&&-%("
    "*%-'-&'%&',%(%*)1.),&*&'<&*(,0$.0+%(-@'7'0%.(=*%%%&*%%(%&%-)+%%*(%03-'%-)-%/<*'(%'$,%')1+)('*4)'0*%.(--066D%0%.G'))'&&"
    "**3-(%%*)())'7%(('-(2&)/(%(%*'G%5.$</%-E<47;(..)<)')1'&&/)(%%(*,D),-()0:($20(/))&/-/H/6%[D%1[%%/%833*A95).()+/(2Y121&<"
    "78>M%Y'&,%/%/)3*.2%@&')&*4<;&19')(;N3D:K");

/// Coordinate i, 0 to 2, of a point of eight.
[[nodiscard]] constexpr std::uint32_t coordinate_of_eight(std::uint16_t point, std::size_t i) noexcept {
  return point >> 2 * i & 3u;
}
/// Coordinate i, 0 to 7, of a point of four.
[[nodiscard]] constexpr std::uint32_t coordinate_of_four(std::uint16_t point, std::size_t i) noexcept {
  return point >> 3 * i & 7u;
}

/// The signs of eight weights, bit i that of weight i, 1 for minus, where a format stores seven: the number of minuses is even.
[[nodiscard]] constexpr std::uint32_t even_signs(std::uint32_t seven) noexcept {
  return seven | (static_cast<std::uint32_t>(std::popcount(seven)) & 1u) << 7;
}

/// Eight weights of the IQ2 formats.
constexpr void iq2_eight(std::uint16_t point, std::uint32_t signs, float scale, float* out) noexcept {
  constexpr std::uint8_t values[3] = {8, 25, 43};
  for (std::size_t i = 0; i < 8; ++i) {
    const float v = scale * static_cast<float>(values[coordinate_of_eight(point, i)]);
    out[i] = signs >> i & 1 ? -v : v;
  }
}

}  // namespace detail

/// Four bytes as a little-endian word.
[[nodiscard]] constexpr std::uint32_t little_endian(const std::uint8_t* bytes) noexcept {
  return bytes[0] | std::uint32_t{bytes[1]} << 8 | std::uint32_t{bytes[2]} << 16 | std::uint32_t{bytes[3]} << 24;
}

}  // namespace nihao
