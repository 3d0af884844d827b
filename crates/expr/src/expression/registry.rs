//! The one table of operators: how each is parsed and what it calls.

use super::conditional as special;
use super::function::{
    Argument, Arity, Evaluate, EvaluateInPlaces, EvaluateNamed, Evaluation, Function, NamedFunction,
};
use super::parse::ParseSpecial;
use super::{
    all_values, api_version, arithmetic, array, array_make, bitwise, boolean, comparison, date, javascript, meta, misc,
    object, random, regex, set, string, string_search, timestamp, trigonometry,
};
use crate::accumulator;

/// What an operator is.
pub(super) enum Entry {
    /// A function of operands in order.
    Call(Function),
    /// A function of named operands.
    Named(NamedFunction),
    /// One with a syntax of its own.
    Special(ParseSpecial),
}

const fn call(name: &'static str, arity: Arity, evaluate: Evaluate) -> Entry {
    Entry::Call(Function { name, arity, evaluate: Evaluation::Plain(evaluate) })
}

/// One that remembers where the values of an array lie.
const fn look(name: &'static str, arity: Arity, evaluate: EvaluateInPlaces) -> Entry {
    Entry::Call(Function { name, arity, evaluate: Evaluation::InPlaces(evaluate) })
}

const fn named(
    name: &'static str,
    arguments: &'static [Argument],
    codes: (i32, i32),
    evaluate: EvaluateNamed,
) -> Entry {
    Entry::Named(NamedFunction { name, arguments, not_object: codes.0, unknown: codes.1, evaluate })
}

const fn needed(name: &'static str, code: i32) -> Argument {
    Argument { name, required: Some(code) }
}

const fn optional(name: &'static str) -> Argument {
    Argument { name, required: None }
}

/// What `$zip` calls once it is parsed.
pub(super) const ZIP: NamedFunction = NamedFunction {
    name: "$zip",
    arguments: &[needed("inputs", 34465), optional("useLongestLength"), optional("defaults")],
    not_object: 34460,
    unknown: 34464,
    evaluate: array_make::zip,
};

/// What `$sortArray` calls once it is parsed.
pub(super) const SORT_ARRAY: NamedFunction = NamedFunction {
    name: "$sortArray",
    arguments: &[needed("input", 2942502), needed("sortBy", 2942503)],
    not_object: 2942500,
    unknown: 2942501,
    evaluate: array_make::sort_array,
};

/// What `$getField` calls once it is parsed.
pub(super) const GET_FIELD: NamedFunction = NamedFunction {
    name: "$getField",
    arguments: &[needed("field", 3041702), needed("input", 3041703)],
    not_object: 3041704,
    unknown: 3041701,
    evaluate: object::get_field,
};

/// What `$setField` and `$unsetField` call once they are parsed.
pub(super) const SET_FIELD: NamedFunction = NamedFunction {
    name: "$setField",
    arguments: &[needed("field", 4161102), needed("input", 4161109), needed("value", 4161103)],
    not_object: 4161100,
    unknown: 4161101,
    evaluate: object::set_field,
};

const TRIM: &[Argument] = &[needed("input", 50695), optional("chars")];
const REGEX: &[Argument] = &[needed("input", 31022), needed("regex", 31023), optional("options")];
const REPLACE: &[Argument] = &[needed("input", 51749), needed("find", 51748), needed("replacement", 51747)];
const N_VALUES: &[Argument] = &[needed("n", 5787906), needed("input", 5787907)];
const DATE_ADD: &[Argument] =
    &[needed("startDate", 5166402), needed("unit", 5166402), needed("amount", 5166402), optional("timezone")];

/// The operator of this name.
pub(super) fn find(name: &str) -> Option<Entry> {
    use Arity::{Any, Between, Exactly};
    Some(match name {
        // Arithmetic.
        "$abs" => call("$abs", Exactly(1), arithmetic::abs),
        "$add" => call("$add", Any, arithmetic::add),
        "$ceil" => call("$ceil", Exactly(1), arithmetic::ceil),
        "$divide" => call("$divide", Exactly(2), arithmetic::divide),
        "$exp" => call("$exp", Exactly(1), arithmetic::exp),
        "$floor" => call("$floor", Exactly(1), arithmetic::floor),
        "$ln" => call("$ln", Exactly(1), arithmetic::ln),
        "$log" => call("$log", Exactly(2), arithmetic::log),
        "$log10" => call("$log10", Exactly(1), arithmetic::log10),
        "$mod" => call("$mod", Exactly(2), arithmetic::modulo),
        "$multiply" => call("$multiply", Any, arithmetic::multiply),
        "$pow" => call("$pow", Exactly(2), arithmetic::pow),
        "$round" => call("$round", Between(1, 2), arithmetic::round),
        "$sqrt" => call("$sqrt", Exactly(1), arithmetic::sqrt),
        "$subtract" => call("$subtract", Exactly(2), arithmetic::subtract),
        "$trunc" => call("$trunc", Between(1, 2), arithmetic::trunc),
        "$bitAnd" => call("$bitAnd", Any, bitwise::and),
        "$bitOr" => call("$bitOr", Any, bitwise::or),
        "$bitXor" => call("$bitXor", Any, bitwise::xor),
        "$bitNot" => call("$bitNot", Exactly(1), bitwise::not),
        // Trigonometry.
        "$sin" => call("$sin", Exactly(1), trigonometry::sin),
        "$cos" => call("$cos", Exactly(1), trigonometry::cos),
        "$tan" => call("$tan", Exactly(1), trigonometry::tan),
        "$asin" => call("$asin", Exactly(1), trigonometry::asin),
        "$acos" => call("$acos", Exactly(1), trigonometry::acos),
        "$atan" => call("$atan", Exactly(1), trigonometry::atan),
        "$atan2" => call("$atan2", Exactly(2), trigonometry::atan2),
        "$sinh" => call("$sinh", Exactly(1), trigonometry::sinh),
        "$cosh" => call("$cosh", Exactly(1), trigonometry::cosh),
        "$tanh" => call("$tanh", Exactly(1), trigonometry::tanh),
        "$asinh" => call("$asinh", Exactly(1), trigonometry::asinh),
        "$acosh" => call("$acosh", Exactly(1), trigonometry::acosh),
        "$atanh" => call("$atanh", Exactly(1), trigonometry::atanh),
        "$degreesToRadians" => call("$degreesToRadians", Exactly(1), trigonometry::degrees_to_radians),
        "$radiansToDegrees" => call("$radiansToDegrees", Exactly(1), trigonometry::radians_to_degrees),
        // Comparison and truth.
        "$cmp" => call("$cmp", Exactly(2), comparison::cmp),
        "$eq" => call("$eq", Exactly(2), comparison::eq),
        "$ne" => call("$ne", Exactly(2), comparison::ne),
        "$lt" => call("$lt", Exactly(2), comparison::lt),
        "$lte" => call("$lte", Exactly(2), comparison::lte),
        "$gt" => call("$gt", Exactly(2), comparison::gt),
        "$gte" => call("$gte", Exactly(2), comparison::gte),
        "$not" => call("$not", Exactly(1), boolean::not),
        "$and" => Entry::Special(special::parse_and),
        "$or" => Entry::Special(special::parse_or),
        // Choice, variables, constants.
        "$cond" => Entry::Special(special::parse_cond),
        "$ifNull" => Entry::Special(special::parse_if_null),
        "$switch" => Entry::Special(special::parse_switch),
        "$let" => Entry::Special(special::parse_let),
        "$rand" => Entry::Special(random::parse),
        "$meta" => Entry::Special(meta::parse),
        "$function" => Entry::Special(javascript::parse_function),
        all_values::NAME => Entry::Special(all_values::parse),
        "$_testApiVersion" => Entry::Special(api_version::parse),
        "$_internalJsEmit" => Entry::Special(javascript::parse_emit),
        "$literal" | "$const" => Entry::Special(special::parse_literal),
        // Arrays.
        "$map" => Entry::Special(special::parse_map),
        "$filter" => Entry::Special(special::parse_filter),
        "$reduce" => Entry::Special(special::parse_reduce),
        "$arrayElemAt" => look("$arrayElemAt", Exactly(2), array::array_elem_at),
        "$first" => look("$first", Exactly(1), array::first),
        "$last" => look("$last", Exactly(1), array::last),
        "$size" => look("$size", Exactly(1), array::size),
        "$isArray" => call("$isArray", Exactly(1), array::is_array),
        "$in" => call("$in", Exactly(2), array::is_in),
        "$indexOfArray" => call("$indexOfArray", Between(2, 4), array::index_of_array),
        "$slice" => call("$slice", Between(2, 3), array::slice),
        "$concatArrays" => call("$concatArrays", Any, array_make::concat_arrays),
        "$range" => call("$range", Between(2, 3), array_make::range),
        "$reverseArray" => call("$reverseArray", Exactly(1), array_make::reverse_array),
        "$zip" => Entry::Special(array_make::parse_zip),
        "$sortArray" => Entry::Special(array_make::parse_sort_array),
        "$firstN" => named("$firstN", N_VALUES, (5787801, 5787901), array::first_n),
        "$lastN" => named("$lastN", N_VALUES, (5787801, 5787901), array::last_n),
        "$maxN" => named("$maxN", N_VALUES, (5787900, 5787901), array::max_n),
        "$minN" => named("$minN", N_VALUES, (5787900, 5787901), array::min_n),
        // Sets.
        "$setUnion" => call("$setUnion", Any, set::set_union),
        "$setIntersection" => call("$setIntersection", Any, set::set_intersection),
        "$setDifference" => call("$setDifference", Exactly(2), set::set_difference),
        "$setEquals" => call("$setEquals", Any, set::set_equals),
        "$setIsSubset" => call("$setIsSubset", Exactly(2), set::set_is_subset),
        "$anyElementTrue" => call("$anyElementTrue", Exactly(1), set::any_element_true),
        "$allElementsTrue" => call("$allElementsTrue", Exactly(1), set::all_elements_true),
        // Documents.
        "$mergeObjects" => call("$mergeObjects", Any, object::merge_objects),
        "$objectToArray" => call("$objectToArray", Exactly(1), object::object_to_array),
        "$arrayToObject" => call("$arrayToObject", Exactly(1), object::array_to_object),
        "$getField" => Entry::Special(object::parse_get_field),
        "$setField" => Entry::Special(object::parse_set_field),
        "$unsetField" => Entry::Special(object::parse_unset_field),
        // Strings.
        "$concat" => call("$concat", Any, string::concat),
        "$toLower" => call("$toLower", Exactly(1), string::to_lower),
        "$toUpper" => call("$toUpper", Exactly(1), string::to_upper),
        "$strcasecmp" => call("$strcasecmp", Exactly(2), string::strcasecmp),
        "$strLenBytes" => call("$strLenBytes", Exactly(1), string::str_len_bytes),
        "$strLenCP" => call("$strLenCP", Exactly(1), string::str_len_cp),
        "$substr" | "$substrBytes" => call("$substrBytes", Exactly(3), string::substr_bytes),
        "$substrCP" => call("$substrCP", Exactly(3), string::substr_cp),
        "$split" => call("$split", Exactly(2), string::split),
        "$trim" => named("$trim", TRIM, (50696, 50694), string::trim),
        "$ltrim" => named("$ltrim", TRIM, (50696, 50694), string::ltrim),
        "$rtrim" => named("$rtrim", TRIM, (50696, 50694), string::rtrim),
        "$indexOfBytes" => call("$indexOfBytes", Between(2, 4), string_search::index_of_bytes),
        "$indexOfCP" => call("$indexOfCP", Between(2, 4), string_search::index_of_cp),
        "$replaceOne" => named("$replaceOne", REPLACE, (51751, 51750), string_search::replace_one),
        "$replaceAll" => named("$replaceAll", REPLACE, (51751, 51750), string_search::replace_all),
        "$regexMatch" => named("$regexMatch", REGEX, (51103, 31024), regex::regex_match),
        "$regexFind" => named("$regexFind", REGEX, (51103, 31024), regex::regex_find),
        "$regexFindAll" => named("$regexFindAll", REGEX, (51103, 31024), regex::regex_find_all),
        // Types.
        "$type" => call("$type", Exactly(1), misc::type_of),
        "$isNumber" => call("$isNumber", Exactly(1), misc::is_number),
        "$bsonSize" => call("$bsonSize", Exactly(1), misc::bson_size),
        "$toHashedIndexKey" => call("$toHashedIndexKey", Exactly(1), misc::to_hashed_index_key),
        "$binarySize" => call("$binarySize", Exactly(1), misc::binary_size),
        "$convert" => Entry::Special(special::parse_convert),
        "$toBool" => Entry::Special(|parser, element| special::conversion_to(parser, element, "bool")),
        "$toDate" => Entry::Special(|parser, element| special::conversion_to(parser, element, "date")),
        "$toDecimal" => Entry::Special(|parser, element| special::conversion_to(parser, element, "decimal")),
        "$toDouble" => Entry::Special(|parser, element| special::conversion_to(parser, element, "double")),
        "$toInt" => Entry::Special(|parser, element| special::conversion_to(parser, element, "int")),
        "$toLong" => Entry::Special(|parser, element| special::conversion_to(parser, element, "long")),
        "$toObjectId" => Entry::Special(|parser, element| special::conversion_to(parser, element, "objectId")),
        "$toString" => Entry::Special(|parser, element| special::conversion_to(parser, element, "string")),
        // Accumulators as expressions.
        "$sum" => call("$sum", Any, accumulator::sum_of_operands),
        "$avg" => call("$avg", Any, accumulator::avg_of_operands),
        "$min" => call("$min", Any, accumulator::min_of_operands),
        "$max" => call("$max", Any, accumulator::max_of_operands),
        "$stdDevPop" => call("$stdDevPop", Any, accumulator::std_dev_pop_of_operands),
        "$stdDevSamp" => call("$stdDevSamp", Any, accumulator::std_dev_samp_of_operands),
        "$percentile" => Entry::Special(special::parse_percentile_expression),
        "$median" => Entry::Special(special::parse_percentile_expression),
        _ => return find_date(name),
    })
}

/// Operators on dates. A part is taken of a date alone or of `{date, timezone}`.
fn find_date(name: &str) -> Option<Entry> {
    macro_rules! part {
        ($name:literal, $evaluate:path) => {
            Entry::Special(|parser, element| date::parse_part(parser, element, $name, $evaluate))
        };
    }
    Some(match name {
        "$year" => part!("$year", date::year),
        "$month" => part!("$month", date::month),
        "$dayOfMonth" => part!("$dayOfMonth", date::day_of_month),
        "$hour" => part!("$hour", date::hour),
        "$minute" => part!("$minute", date::minute),
        "$second" => part!("$second", date::second),
        "$millisecond" => part!("$millisecond", date::millisecond),
        "$dayOfYear" => part!("$dayOfYear", date::number_in_year),
        "$dayOfWeek" => part!("$dayOfWeek", date::day_of_week),
        "$week" => part!("$week", date::week_of_year),
        "$isoWeek" => part!("$isoWeek", date::iso_week_of_year),
        "$isoWeekYear" => part!("$isoWeekYear", date::iso_week_year),
        "$isoDayOfWeek" => part!("$isoDayOfWeek", date::iso_day_of_week),
        "$dateFromParts" => Entry::Special(date::parse_from_parts),
        "$dateToParts" => {
            const PARTS: &[Argument] = &[needed("date", 40522), optional("timezone"), optional("iso8601")];
            named("$dateToParts", PARTS, (40524, 40520), date::date_to_parts)
        }
        "$dateToString" => {
            const STRING: &[Argument] =
                &[needed("date", 18628), optional("format"), optional("timezone"), optional("onNull")];
            named("$dateToString", STRING, (18629, 18534), date::date_to_string)
        }
        "$dateFromString" => {
            const STRING: &[Argument] = &[
                needed("dateString", 40542),
                optional("timezone"),
                optional("format"),
                optional("onNull"),
                optional("onError"),
            ];
            named("$dateFromString", STRING, (40540, 40541), date::date_from_string)
        }
        "$dateAdd" => named("$dateAdd", DATE_ADD, (5166400, 5166401), date::date_add),
        "$dateSubtract" => named("$dateSubtract", DATE_ADD, (5166400, 5166401), date::date_subtract),
        "$dateDiff" => {
            const DIFF: &[Argument] = &[
                needed("startDate", 5166303),
                needed("endDate", 5166304),
                needed("unit", 5166305),
                optional("timezone"),
                optional("startOfWeek"),
            ];
            named("$dateDiff", DIFF, (5166301, 5166302), date::date_diff)
        }
        "$dateTrunc" => {
            const TRUNC: &[Argument] = &[
                needed("date", 5439009),
                needed("unit", 5439010),
                optional("binSize"),
                optional("timezone"),
                optional("startOfWeek"),
            ];
            named("$dateTrunc", TRUNC, (5439007, 5439008), date::date_trunc)
        }
        "$tsSecond" => call("$tsSecond", Arity::Exactly(1), timestamp::second),
        "$tsIncrement" => call("$tsIncrement", Arity::Exactly(1), timestamp::increment),
        _ => return None,
    })
}
