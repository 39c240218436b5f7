/** CSV as people write it, and as the service wrote it. */
import test from 'ava'
import { csvRows } from '../../../../actors/identity/users/csv.js'
import { csvOf } from '../../../../actors/domain/entities/csv.js'

const cells = (text: string) => csvRows(text)?.map((row) => row.cells)

test('rows have their cells and their lines', (t) => {
  t.deepEqual(csvRows('email,name\r\nann@example.com,"Ann ""A"", B"\n\n\nbob@example.com,'), [
    { line: 1, cells: ['email', 'name'] },
    { line: 2, cells: ['ann@example.com', 'Ann "A", B'] },
    { line: 5, cells: ['bob@example.com', ''] },
  ])
  t.deepEqual(cells('\uFEFFemail'), [['email']])
  t.deepEqual(cells(''), [])
  t.deepEqual(
    csvRows('"a\nb",c\nd,e')?.map(({ line }) => line),
    [1, 3],
  )
})

test('a quote without an end, and text after a quote, cannot be read', (t) => {
  for (const text of ['"', 'a,"b', '"a"b', '"a""']) t.is(csvRows(text), undefined, text)
})

test('what the service exports is read as it was', (t) => {
  const rows = [
    ['=1+1', '@a, "b"'],
    ['+49', "'quoted'"],
  ]
  t.deepEqual(cells(csvOf(rows)), rows)
})
