/** Links between the pages of this repository lead to files that exist, and to headings that they have. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, normalize } from 'node:path'
import test from 'ava'

const PAGES_MIN = 40

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  '.github/CODE_OF_CONDUCT.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
]

const withoutCode = (text: string) => text.replaceAll(/^ *```.*?^ *```$/gms, '')

/** The anchor that GitHub gives a heading. */
function anchorOf(heading: string): string {
  const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '')
  return text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-')
}

function anchorsIn(page: string): ReadonlySet<string> {
  const text = withoutCode(readFileSync(page, 'utf8'))
  return new Set([...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading!)))
}

function brokenLinks(page: string): readonly string[] {
  const links = withoutCode(readFileSync(page, 'utf8')).matchAll(/\]\(([^)\s]+)\)/g)
  return [...links]
    .map(([, target]) => target!)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? page : normalize(join(page, '..', path))
      if (!existsSync(file)) return true
      return anchor !== undefined && file.endsWith('.md') && !anchorsIn(file).has(anchor)
    })
}

test('links between pages lead somewhere', (t) => {
  t.true(pages.length >= PAGES_MIN, `${pages.length} pages`)
  const broken = pages.flatMap((page) => brokenLinks(page).map((target) => `${page}: ${target}`))
  t.deepEqual(broken, [])
})
