/** The capacity model: its table in the docs is what it prints, and it follows its inputs. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'

const ROOT = new URL('../../../', import.meta.url)
const MODEL = fileURLToPath(new URL('dist/bench/capacity/simulation.js', ROOT))
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8')

type Inputs = Record<string, { readonly value: unknown; readonly source: string }>
const inputs = JSON.parse(read('bench/capacity/inputs.json')) as Inputs

const printed = (...file: string[]) =>
  execFileSync(process.execPath, [MODEL, ...file])
    .toString()
    .trim()

/** The table for other inputs, as numbers by column. */
function computed(changes: Readonly<Record<string, unknown>>): Record<string, number>[] {
  const folder = mkdtempSync(join(tmpdir(), 'svc-capacity-'))
  try {
    const file = join(folder, 'inputs.json')
    const changed = Object.fromEntries(
      Object.entries(changes).map(([name, value]) => [name, { value, source: 'test' }]),
    )
    writeFileSync(file, JSON.stringify({ ...inputs, ...changed }))
    const [head = [], , ...rows] = printed(file)
      .split('\n')
      .map((line) =>
        line
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim()),
      )
    return rows.map((row) =>
      Object.fromEntries(
        row.map((cell, at) => [head[at], Number.parseFloat(cell.replaceAll(',', ''))]),
      ),
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('the sizing page has the table of the model', (t) => {
  const page = read('docs/guides/operations/sizing.md')
  const shown = page.split('<!-- capacity:begin -->')[1]?.split('<!-- capacity:end -->')[0]?.trim()
  t.is(shown, printed())
})

test('every input has its source', (t) => {
  for (const [name, { source }] of Object.entries(inputs)) t.true(source.length > 3, name)
})

test('the need grows with the load, and a cell stays within its bounds until a tenant fills it', (t) => {
  const rows = computed({ scales: [0.5, 5, 50] })
  for (const [nth, row] of rows.entries()) {
    t.true(
      row['processors of the busiest database']! <=
        Number(inputs['cell_database_processors']!.value),
    )
    t.true(row['TiB of a cell after a year']! <= Number(inputs['cell_disk_tib']!.value))
    if (nth === 0) continue
    t.true(row['cells']! > rows[nth - 1]!['cells']!)
    t.is(row['tokens per second']!, rows[nth - 1]!['tokens per second']! * 10)
  }
})

test('fewer refreshes need less disk, more passwords need more processors', (t) => {
  const [now] = computed({ scales: [1] })
  const [rarer] = computed({ scales: [1], refreshes_per_person_and_day: 8 })
  t.true(rarer!['TiB of a cell after a year']! < now!['TiB of a cell after a year']! * 0.7)
  const [typed] = computed({ scales: [1], password_share: 1 })
  t.true(typed!['processors of the service']! > now!['processors of the service']!)
})
