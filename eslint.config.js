import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig(
  { ignores: ["dist/", "node_modules/", ".serverless/", ".esbuild/", ".stryker-tmp/"] },
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: { allowDefaultProject: ["eslint.config.js"] } },
    },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
    },
  },
  {
    // node:test's describe/it return promises that the runner itself awaits.
    files: ["test/**/*.ts"],
    rules: {
      "@typescript-eslint/no-floating-promises": [
        "error",
        {
          allowForKnownSafeCalls: [
            { from: "package", name: ["it", "describe", "test", "suite"], package: "node:test" },
          ],
        },
      ],
      "@typescript-eslint/no-non-null-assertion": "off",
    },
  },
  {
    // The two planes meet only in shared/; shared/ imports none of the others.
    files: ["shared/**/*.ts"],
    rules: {
      "no-restricted-imports": [
        "error",
        { patterns: ["**/functions/**", "**/worker/**", "**/local/**", "**/cli/**", "**/test/**"] },
      ],
    },
  },
  {
    files: ["functions/**/*.ts"],
    rules: {
      "no-restricted-imports": ["error", { patterns: ["**/worker/**", "**/local/**", "**/cli/**", "**/test/**"] }],
    },
  },
  {
    files: ["worker/**/*.ts"],
    rules: {
      "no-restricted-imports": ["error", { patterns: ["**/functions/**", "**/local/**", "**/cli/**", "**/test/**"] }],
    },
  },
);
