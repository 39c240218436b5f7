/**
 * Markdown of docs/ as HTML: headings with anchors, links to pages of the site, tables that scroll on narrow screens, and code
 * with colours and a button that copies it. `<!-- tabs: a.py b.go -->` shows files of docs/examples, one at a time.
 */
import { posix } from 'node:path'
import { Marked, type Token, type Tokens } from 'marked'
import { highlighted } from '../../../pages/platform/highlight.js'
import { docsPath, DOCS, readDocsFile } from './library.js'

const PICTURES = `${DOCS}/pictures`
const TABS = /^<!-- tabs: (.+) -->/
const EXAMPLE = /^examples\/[\w./-]+\.(\w+)$/
/** The language of a file by its ending: for readers, and for colours. */
const LANGUAGES: Readonly<Record<string, readonly [title: string, language: string]>> = {
  go: ['Go', 'go'],
  mjs: ['JavaScript', 'js'],
  py: ['Python', 'python'],
  sh: ['curl', 'sh'],
  ts: ['TypeScript', 'ts'],
}
const PICTURE = /^pictures\/([a-z0-9-]+\.(?:png|svg))$/

type DocsHeading = { readonly id: string; readonly text: string; readonly depth: number }

export type DocsContent = {
  /** Without the first heading, which the frame shows. */
  readonly html: string
  readonly headings: readonly DocsHeading[]
  /** The text below each heading. The first part has the heading null. */
  readonly parts: readonly { readonly heading: DocsHeading | null; readonly text: string }[]
}

/** @param files the pages that exist, to which links may lead */
export function docsContent(file: string, files: ReadonlySet<string>): DocsContent {
  const marked = new Marked({ gfm: true })
  const tokens = marked.lexer(readDocsFile(file))
  const ids = new Map<string, number>()
  const headings = new Map<Token, DocsHeading>()
  const parts: { heading: DocsHeading | null; text: string }[] = [{ heading: null, text: '' }]
  for (const token of tokens) {
    if (token.type === 'heading' && (token as Tokens.Heading).depth > 1) {
      const { depth, text: raw } = token as Tokens.Heading
      const text = plain(raw)
      const heading = { id: freeId(text, ids), text, depth }
      headings.set(token, heading)
      parts.push({ heading, text: '' })
    } else if (token.type !== 'heading' && token.type !== 'html')
      parts.at(-1)!.text += `${plain(token.raw)}\n`
  }
  marked.use({
    renderer: {
      heading(token) {
        const heading = headings.get(token)
        if (heading === undefined) return ''
        const { id, depth } = heading
        const words = this.parser.parseInline(token.tokens)
        return `<h${depth} id="${id}"><a href="#${id}">${words}</a></h${depth}>\n`
      },
      // Comments steer our generators and tests. Other markup is shown as text.
      html({ text }) {
        const named = TABS.exec(text)?.[1]
        if (named !== undefined) return tabs(named.split(' ').map((name) => resolved(file, name)))
        return text.startsWith('<!--') ? '' : escaped(text)
      },
      code: ({ text, lang = '' }) => codeBlock(text, lang),
      image: ({ href, text }) => {
        const name = PICTURE.exec(resolved(file, href))?.[1]
        return name === undefined
          ? escaped(text)
          : `<img src="${PICTURES}/${name}" alt="${escaped(text)}" loading="lazy">`
      },
      link({ href, tokens: inner }) {
        const words = this.parser.parseInline(inner)
        const target = linkTarget(file, href, files)
        return target === null ? words : `<a href="${escaped(target)}">${words}</a>`
      },
      table(token) {
        const cell = (each: Tokens.TableCell, name: 'th' | 'td') =>
          `<${name}>${this.parser.parseInline(each.tokens)}</${name}>`
        const head = token.header.map((each) => cell(each, 'th')).join('')
        const rows = token.rows.map(
          (row) => `<tr>${row.map((each) => cell(each, 'td')).join('')}</tr>`,
        )
        return `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead><tr>${head}</tr></thead><tbody>${rows.join('\n')}</tbody></table></div>\n`
      },
    },
  })
  return { html: marked.parser(tokens), headings: [...headings.values()], parts }
}

/** The button works with a script only, which shows it. */
function codeBlock(text: string, language: string): string {
  const named = language === '' ? '' : ` data-lang="${escaped(language)}"`
  const code = highlighted(text, language, escaped)
  return `<div class="code"><button type="button" class="small" data-copy data-copied="Copied" hidden>Copy</button><pre tabindex="0"${named}><code>${code}</code></pre></div>\n`
}

/** One file at a time, by radio buttons: no script needs to run. */
function tabs(files: readonly string[]): string {
  const group = files[0]!
  const parts = files.map((file, at) => {
    const [title, language] = LANGUAGES[EXAMPLE.exec(file)?.[1] ?? ''] ?? [file, '']
    const id = `tab-${group.replaceAll(/\W+/g, '-')}-${at}`
    const code = codeBlock(readDocsFile(file).trimEnd(), language)
    return `<input type="radio" name="${escaped(group)}" id="${id}"${at === 0 ? ' checked' : ''}><label for="${id}">${title}</label>${code}`
  })
  return `<fieldset class="tabs"><legend class="unseen">Language</legend>${parts.join('')}</fieldset>\n`
}

/** A page of the site, an address elsewhere, or null for files of the source tree that are not served. */
function linkTarget(file: string, href: string, files: ReadonlySet<string>): string | null {
  if (/^(?:https?:|mailto:)/.test(href) || href.startsWith('#')) return href
  const [path = '', fragment] = href.split('#')
  const target = resolved(file, path)
  if (!files.has(target)) return null
  return docsPath(target) + (fragment === undefined ? '' : `#${fragment}`)
}

/** A relative reference as a name below docs/. */
function resolved(file: string, reference: string): string {
  return posix.normalize(posix.join(posix.dirname(file), reference))
}

/** The anchors of GitHub, which links in docs/ use. */
function freeId(text: string, taken: Map<string, number>): string {
  const id = text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')
  const count = taken.get(id) ?? 0
  taken.set(id, count + 1)
  return count === 0 ? id : `${id}-${count}`
}

/** Markdown as the words that a reader sees. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .replaceAll('|', ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (char) => ENTITIES[char]!)
}
