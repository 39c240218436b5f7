/**
 * docs/concepts/walks.md lists files in the order in which an operation reaches them: each one exists, and follows from
 * the file before it (or from the one that its line names) by an import or by a message kind.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'

const STEPS_MIN = 8

type Step = {
  readonly file: string
  /** The file that the line names as its origin; undefined: the step before. */
  readonly from: string | undefined
  readonly messages: readonly string[]
}

const page = readFileSync('docs/concepts/walks.md', 'utf8')
const sections = page
  .split(/^## /m)
  .slice(1)
  .map((section) => ({ title: section.slice(0, section.indexOf('\n')), steps: stepsOf(section) }))
const walks = sections.filter(({ steps }) => steps.length > 0)

function stepsOf(section: string): readonly Step[] {
  const items = section.match(/^\d+\. .*\n(?: {3,4}\S.*\n)*/gm) ?? []
  return items.map((item) => {
    const text = item.replaceAll(/\n +/g, ' ')
    const [, messages = ''] = /receives? the messages? ((?:`\w+`(?: and )?)+)/.exec(text) ?? []
    return {
      file: /`([\w./-]+)`/.exec(text)![1]!,
      from: /, from `([\w./-]+)`,/.exec(text)?.[1],
      messages: [...messages.matchAll(/`(\w+)`/g)].map(([, kind]) => kind!),
    }
  })
}

const sources = new Map<string, string>()
function sourceOf(file: string): string {
  const source = sources.get(file) ?? readFileSync(file, 'utf8')
  sources.set(file, source)
  return source
}

function imports(importer: string, imported: string): boolean {
  const specifiers = sourceOf(importer).matchAll(/(?:from|import\() *'(\.[^']+)\.js'/g)
  return [...specifiers].some(([, path]) => `${join(importer, '..', path!)}.ts` === imported)
}

/** The files in the folder of a file that it imports. */
function neighbours(file: string): readonly string[] {
  const specifiers = sourceOf(file).matchAll(/from *'(\.\/[^']+)\.js'/g)
  return [...specifiers].map(([, path]) => `${join(file, '..', path!)}.ts`)
}

/** Whether the sender names the kind, and the receiver, or a part of it in its folder, has the handler of that name. */
function receives(receiver: string, sender: string, kind: string): boolean {
  const handler = new RegExp(`^ +(?:async )?${kind}[:(]`, 'm')
  // A route names its message. An actor calls the method of a reference.
  const sends = new RegExp(`'${kind}'|\\.${kind}\\(`)
  return (
    sends.test(sourceOf(sender)) &&
    [receiver, ...neighbours(receiver)].some((file) => handler.test(sourceOf(file)))
  )
}

function follows({ file, messages }: Step, origin: string): boolean {
  if (messages.length > 0) return messages.every((kind) => receives(file, origin, kind))
  return imports(origin, file) || imports(file, origin)
}

test('there are four walks', (t) => t.is(walks.length, 4))

for (const { title, steps } of walks) {
  test(`${title}: every file exists and follows from the one before`, (t) => {
    t.true(steps.length >= STEPS_MIN, `${steps.length} steps`)
    t.deepEqual(
      steps.filter(({ file }) => !existsSync(file)),
      [],
    )
    for (const [index, step] of steps.entries()) {
      if (index === 0) continue
      const origin = step.from ?? steps[index - 1]!.file
      const earlier = steps.slice(0, index).some(({ file }) => file === origin)
      t.true(earlier, `${origin} comes before ${step.file}`)
      t.true(follows(step, origin), `${step.file} does not follow from ${origin}`)
    }
  })
}
