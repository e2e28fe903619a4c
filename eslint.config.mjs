// Rules for the scripts of the pages: npx --yes eslint@9.39.1 (scripts/test calls it where npx is installed).
// The scripts of a page share one scope, in the order of hil/views/__init__.py.
const browser = [
  "addEventListener", "atob", "Blob", "confirm", "console", "DecompressionStream", "devicePixelRatio", "document", "EventSource", "fetch",
  "getComputedStyle", "location", "matchMedia", "performance", "requestAnimationFrame", "ResizeObserver", "IntersectionObserver", "Option", "Response",
  "setTimeout", "clearTimeout", "setInterval", "URL", "URLSearchParams", "window",
];
const ours = [
  "THREE", "uPlot", "element", "text", "RPM", "bytes", "plots", "recorded", "value", "link", "live", "chosen", "gearbox", "clock", "control",
  "drive", "trace", "recordings", "signals", "run", "forms", "scene", "charts", "animation",
];

export default [
  { ignores: ["**/*.min.js", "build/", ".venv/", "docs/", "examples/"] },
  {
    files: ["hil/views/page/**/*.js"],
    linterOptions: { reportUnusedDisableDirectives: "error" },
    languageOptions: {
      ecmaVersion: 2023, sourceType: "script", globals: Object.fromEntries([...browser, ...ours].map((name) => [name, "readonly"])),
    },
    rules: {
      "array-callback-return": "error", "consistent-return": "off", "eqeqeq": "error", "no-constant-condition": "error", "no-dupe-args": "error",
      "no-dupe-keys": "error", "no-duplicate-case": "error", "no-empty": "error", "no-eval": "error", "no-fallthrough": "error",
      "no-global-assign": "error", "no-implied-eval": "error", "no-loss-of-precision": "error", "no-self-assign": "error",
      "no-self-compare": "error", "no-shadow": "error", "no-shadow-restricted-names": "error", "no-undef": "error", "no-unreachable": "error",
      "no-unsafe-finally": "error", "no-unsafe-negation": "error", "no-unsafe-optional-chaining": "error",
      "no-unused-expressions": ["error", { allowShortCircuit: true, allowTernary: true }],
      // what a script defines for the next ones is used there
      "no-unused-vars": ["error", { vars: "local", args: "none" }],
      "no-use-before-define": ["error", { functions: false, variables: false }], "no-useless-catch": "error", "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }], "strict": ["error", "global"], "use-isnan": "error", "valid-typeof": "error",
    },
  },
];
