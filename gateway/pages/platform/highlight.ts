/** Code as HTML with the kinds of its words as classes: comments, strings, numbers and words of the language. No script needs to run. */

const WORDS =
  'and as async await break case catch class const continue default def defer elif else except export extends false finally for ' +
  'from func function go if implements import in interface is let new nil None not null or package pass private public raise ' +
  'return select self static struct switch then this throw throws true True False try type undefined using var void while with ' +
  'yield create table insert into update delete where primary key on conflict do nothing returning values fi esac done local set'
const KEYWORDS: ReadonlySet<string> = new Set(WORDS.split(' '))

const SLASHES = String.raw`\/\/[^\n]*|\/\*[^]*?\*\/`
const HASH = String.raw`(?<![\w$&{"'])#[^\n]*`
/** How comments begin. Languages that are not here are shown plain. */
const COMMENTS: Readonly<Record<string, string>> = {
  bash: HASH,
  console: HASH,
  csharp: SLASHES,
  go: SLASHES,
  http: '(?!)',
  java: SLASHES,
  js: SLASHES,
  json: '(?!)',
  nginx: HASH,
  php: SLASHES,
  python: HASH,
  ruby: HASH,
  sh: HASH,
  sql: '--[^\\n]*',
  toml: HASH,
  ts: SLASHES,
  yaml: HASH,
}
/** Sentences, in which the words of a language are words. */
const PROSE: ReadonlySet<string> = new Set(['console', 'http', 'toml', 'yaml', 'nginx'])
const REST =
  '(`(?:[^`\\\\]|\\\\[^])*`|"(?:[^"\\\\\\n]|\\\\.)*"|\'(?:[^\'\\\\\\n]|\\\\.)*\')|\\b(\\d[\\d_.]*)\\b|([A-Za-z_$][\\w$]*)'

/** @param escaped writes text as HTML */
export function highlighted(
  code: string,
  language: string,
  escaped: (text: string) => string,
): string {
  const comment = COMMENTS[language]
  if (comment === undefined) return escaped(code)
  const kinds = ['c', 's', 'n', 'k'] as const
  let html = ''
  let at = 0
  for (const found of code.matchAll(new RegExp(`(${comment})|${REST}`, 'g'))) {
    const kind = kinds[found.slice(1).findIndex((part) => part !== undefined)]!
    const [text] = found
    if (kind === 'k' && (PROSE.has(language) || !KEYWORDS.has(text))) continue
    html += `${escaped(code.slice(at, found.index))}<span class="${kind}">${escaped(text)}</span>`
    at = found.index + text.length
  }
  return html + escaped(code.slice(at))
}
