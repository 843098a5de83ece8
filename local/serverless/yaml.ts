import { parseDocument, type CollectionTag, type ScalarTag, type Tags, type YAMLMap, type YAMLSeq } from "yaml";

/** CloudFormation's short forms and the long forms that they stand for. */
const INTRINSICS = {
  "!Ref": "Ref",
  "!Condition": "Condition",
  "!And": "Fn::And",
  "!Base64": "Fn::Base64",
  "!Cidr": "Fn::Cidr",
  "!Equals": "Fn::Equals",
  "!FindInMap": "Fn::FindInMap",
  "!GetAtt": "Fn::GetAtt",
  "!GetAZs": "Fn::GetAZs",
  "!If": "Fn::If",
  "!ImportValue": "Fn::ImportValue",
  "!Join": "Fn::Join",
  "!Not": "Fn::Not",
  "!Or": "Fn::Or",
  "!Select": "Fn::Select",
  "!Split": "Fn::Split",
  "!Sub": "Fn::Sub",
} as const;

function tagsFor(tag: string, longForm: string): (ScalarTag | CollectionTag)[] {
  return [
    {
      tag,
      // `!GetAtt A.B` is the one short form whose scalar is not the argument itself.
      resolve: (text: string) => ({ [longForm]: longForm === "Fn::GetAtt" ? splitOnce(text) : text }),
    },
    // The value becomes a plain object inside a scalar node, which is what a tag may return for any collection.
    { tag, collection: "seq", resolve: (node: YAMLSeq | YAMLMap) => ({ [longForm]: node.toJSON() as unknown }) },
    { tag, collection: "map", resolve: (node: YAMLSeq | YAMLMap) => ({ [longForm]: node.toJSON() as unknown }) },
  ];
}

function splitOnce(text: string): string[] {
  const dot = text.indexOf(".");
  return dot < 0 ? [text] : [text.slice(0, dot), text.slice(dot + 1)];
}

const customTags: Tags = Object.entries(INTRINSICS).flatMap(([tag, longForm]) => tagsFor(tag, longForm));

/**
 * Parses YAML that may contain CloudFormation's short-form tags; each comes back as its long form (`!Ref X` as
 * `{ Ref: "X" }`). An unknown tag is an error, since its meaning would be lost.
 */
export function parseCloudFormationYaml(text: string, fileName: string): unknown {
  const document = parseDocument(text, { customTags });
  // An unresolved tag is only a warning to the parser.
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem !== undefined) throw new Error(`${fileName}: ${problem.message}`);
  return document.toJS() as unknown;
}
