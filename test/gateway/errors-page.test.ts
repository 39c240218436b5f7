import { readFileSync } from 'node:fs'
import test from 'ava'
import { FINER_CODES, problemCode, PROBLEM_TYPES } from '../../gateway/response/problems.js'

const page = readFileSync(new URL('../../../docs/reference/errors.md', import.meta.url), 'utf8')

test('docs/reference/errors.md has one row per problem type, as the catalogue says', (t) => {
  const rows = page.split('\n').filter((line) => /^\| \d{3} \|/.test(line))
  const expected = Object.entries(PROBLEM_TYPES).map(
    ([name, { status, title, meaning }]) =>
      `| ${status} | \`${name}\` | \`${problemCode(name as keyof typeof PROBLEM_TYPES)}\` | ${title} | ${meaning} |`,
  )
  t.deepEqual(rows, expected)
})

test('docs/reference/errors.md has the codes that are finer than their type', (t) => {
  const [, section = ''] = page.split('## Finer codes')
  const rows = section.split('\n').filter((line) => line.startsWith('| `'))
  const expected = Object.entries(FINER_CODES).map(
    ([name, codes]) => `| \`${name}\` | ${codes.map((code) => `\`${code}\``).join(', ')} |`,
  )
  t.deepEqual(rows, expected)
})
