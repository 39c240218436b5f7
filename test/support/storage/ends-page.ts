/** The lists of docs/concepts/ends.md, from the table of `storage/platform/ends` and from the schema. */
import { readFileSync } from 'node:fs'
import { MIGRATIONS_FOLDER } from '../../../storage/platform/schema-version.js'
import { ENDINGS, ENDS, TRIGGERS } from '../../../storage/platform/ends/table.js'

const PAGE = new URL('../../../../docs/concepts/ends.md', import.meta.url)
const START = '<!-- written by: node dist/test/support/storage/write-ends-page.js -->'
const END = '<!-- end -->'

export type Schema = {
  /** Triggers whose function writes rows of other tables, with the table of the trigger. */
  readonly writingTriggers: ReadonlyMap<string, string>
  /** The tables whose rows are deleted with a row of a table, by foreign keys. */
  readonly deletedWith: (table: string) => readonly string[]
}

export function readSchema(): Schema {
  const text = readFileSync(new URL('schema.sql', MIGRATIONS_FOLDER), 'utf8')
  const functions = text.matchAll(
    /FUNCTION public\.(\w+)\(\)\s+RETURNS trigger.*?AS \$function\$(.*?)\$function\$/gs,
  )
  const writing = new Set<string>()
  for (const [, name = '', body = ''] of functions) {
    if (/\b(insert into|update|delete from) \w+/.test(body)) writing.add(name)
  }
  const triggers = text.matchAll(
    /^CREATE (?:CONSTRAINT )?TRIGGER (\w+) .*? ON public\.(\w+) .*EXECUTE FUNCTION (\w+)\(/gm,
  )
  const writingTriggers = new Map<string, string>()
  for (const [, name = '', table = '', called = ''] of triggers) {
    if (writing.has(called)) writingTriggers.set(name, table)
  }
  const children = new Map<string, Set<string>>()
  for (const [, child = '', members = ''] of text.matchAll(/^create table (\w+) \((.*?)^\);?/gms)) {
    for (const [, parent = ''] of members.matchAll(
      /REFERENCES (\w+)\([^)]*\) ON DELETE CASCADE/g,
    )) {
      children.set(parent, (children.get(parent) ?? new Set()).add(child))
    }
  }
  const deletedWith = (table: string) => {
    const found = new Set<string>()
    const visit = (parent: string) => {
      for (const child of children.get(parent) ?? []) {
        if (found.has(child)) continue
        found.add(child)
        visit(child)
      }
    }
    visit(table)
    return [...found].toSorted()
  }
  return { writingTriggers, deletedWith }
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')

const code = (name: string) => `\`${name}\``

function lists(): Readonly<Record<string, string>> {
  const { writingTriggers, deletedWith } = readSchema()
  const deleted = Object.values(ENDINGS)
    .flatMap(({ writes }) => [...writes])
    .flatMap((write) => /^delete (\w+)/.exec(write)?.[1] ?? [])
  return {
    ends: table(
      ['When', 'What ends', 'Stored reason', 'Recorded'],
      ENDS.map(({ on, ends, reason, recorded }) => [ENDINGS[on].when, ends, reason, recorded]),
    ),
    deletes: table(
      ['A deleted row of', 'takes with it the rows of'],
      deleted.map((one) => [code(one), deletedWith(one).map(code).join(', ') || 'none']),
    ),
    triggers: table(
      ['Trigger', 'of', 'Why it stays'],
      [...writingTriggers].map(([name, of]) => [code(name), code(of), TRIGGERS[name] ?? '']),
    ),
  }
}

/** The page as it is, and with the lists of today. */
export function readEndsPage() {
  const text = readFileSync(PAGE, 'utf8')
  const written = Object.entries(lists()).reduce(
    (page, [name, list]) =>
      page.replace(
        new RegExp(`(<!-- ${name} -->\n${START}\n)[^]*?(${END})`),
        (_, start: string, end: string) => `${start}\n${list}\n\n${end}`,
      ),
    text,
  )
  return { page: PAGE, text, written }
}
