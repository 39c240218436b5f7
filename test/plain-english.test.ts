/** Comments, docs and texts use plain English: subject, verb, object, with the actor named. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'

const FOLDERS = ['runtime', 'actors', 'gateway', 'storage', 'bench', 'test', 'docs', '.ci']
const ENDINGS = /\.(ts|md|eta|mjs|cjs)$/
/** Lists of passwords, and this list. */
const EXEMPT = /commonest|^test\/plain-english\.test\.ts$/

/** What reads badly, and what to write in its place. */
const BANNED: readonly [pattern: RegExp, instead: string][] = [
  [/\b(whoever|whomever)\b/i, 'name the actor: the caller, a client, the user'],
  [/(?<!\w)Whose\b/, 'a main clause: "When a session ends, ..."'],
  [/\b(is|are|was|were|be) told\b/i, 'gets, returns or emits'],
  [/\bmeanwhile\b/i, 'during the call, while ... runs, or nothing'],
  [/\bby (itself|themselves)\b/i, 'alone, automatically, or nothing'],
  [/\bthat (is|are) none\b/i, 'invalid, not a ...'],
  [/\bgives? no answer\b/i, 'is unavailable, does not respond'],
  // The system user is quoted.
  [/(?<!['"])\b([Nn]obody|[Ss]omebody)\b(?!['"])/, 'no user, no caller, another client'],
  [/\bthe house\b/i, 'the service, the process'],
  [/\btells? of\b/i, 'reports, announces'],
  [/(^|[.:;|*-] |\/\/ |')Of [a-z]/, 'begin with the subject: "One of several calls ..."'],
  [/\bof before\b/i, 'earlier'],
  [/\bis led to\b/i, 'is redirected to'],
  [/\bin the hands\b/i, 'held by, in the possession of'],
  [/\bhas its (say|own word)\b/i, 'decides, is checked'],
  [/\bmind(s|ed)? its\b/i, 'checks, respects'],
  [/\bcomes? to nothing\b/i, 'fails, has no effect'],
  [/\bgoes on by\b/i, 'continues with'],
  [/\bas it stands\b/i, 'unchanged'],
  [/\b(that|those) of\b/i, "repeat the noun, or: the tenant's"],
  [/\bat once\b/i, 'immediately, without waiting, in parallel, in one statement'],
  [/\bof (its|their|your|our|his|her|one['’]s) own\b/i, 'its own key, a separate key'],
  [/\bthere (is|are|was|were) none\b/i, 'undefined without a session, or null'],
  [/\banew\b/i, 'again'],
  [/(?<!-)\bbeside\b/i, 'next to, besides, during, with'],
  [/\bworth of\b/i, 'say the amount'],
  [
    /\b(decisions|interface|standards)\.md|architecture\.md section/,
    'the RFC, or a page of docs/reference',
  ],
]

/** In code, only lines that hold a comment or a text are read. */
function isProse(path: string, line: string): boolean {
  return !path.endsWith('.ts') || /^\s*(\*|\/[/*])|['"`]|\/\//.test(line)
}

const files = [
  ...FOLDERS.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  ),
  ...readdirSync('.'),
].filter((path) => ENDINGS.test(path) && !EXEMPT.test(path))

test('the tree was found', (t) => t.true(files.length > 1_000))

for (const [pattern, instead] of BANNED) {
  test(`write "${instead}", not ${pattern.source}`, (t) => {
    const found = files.flatMap((path) =>
      readFileSync(path, 'utf8')
        .split('\n')
        .map((line, index) => ({ line, place: `${path}:${index + 1}` }))
        .filter(({ line }) => pattern.test(line) && isProse(path, line))
        .map(({ line, place }) => `${place}: ${pattern.exec(line)![0]}`),
    )
    t.deepEqual(found, [], `write: ${instead}`)
  })
}
