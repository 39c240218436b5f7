/** Work on many objects of a list at a time, and the import of people from a CSV file, which is shown before it is done. */
import type { FormFields, UploadedForm } from '../../route.js'
import type { ApiAnswer } from './api.js'
import { filled, isItem, type Item } from './declaration.js'
import { ConsolePages } from './pages.js'
import { itemPath, listPath, type Place } from './site.js'
import { languageOf, type Outcome, refusedToken, type Visit } from './visit.js'
import { nameOf, problemOf, statusOf, wordOf } from './values.js'

const IMPORT = '/api/v1/tenant-users/import'
const CSV = 'text/csv'
/** Objects of one request. */
const CHOSEN_MAX = 50
const ID = /^[0-9a-f-]{36}$/

export class ConsolePeople extends ConsolePages {
  /** The chosen objects of a list, or what came of the action that was confirmed for them. */
  async bulk(visit: Visit, place: Place, sent: FormFields): Promise<Outcome> {
    const { resource } = place
    const here = listPath(place)
    const wanted = sent.find(([name]) => name === 'action')?.[1] ?? ''
    const isConfirmed = sent.some(([name]) => name === 'confirmed')
    const action = resource.actions?.find(({ name, on }) => on === 'item' && name === wanted)
    if (action === undefined || resource.bulk?.includes(action.name) !== true)
      return this.missing(visit, place, null)
    const ids = [
      ...new Set(sent.flatMap(([name, id]) => (name === 'ids' && ID.test(id) ? [id] : []))),
    ]
    const { say } = languageOf(visit.request)
    const rows: {
      id: string
      name: string
      path: string
      label: unknown
      detail: string | null
    }[] = []
    for (const id of ids.slice(0, CHOSEN_MAX)) {
      const of = { ...place, ids: [id], isItem: true }
      const found = await this.find(visit, of)
      if ('answer' in found) {
        if (found.answer.status === 401) return refusedToken(found.answer, null, here)
        continue
      }
      const { item } = found
      const row = { id, name: nameOf(item, resource), path: itemPath(place, id) }
      if (!isConfirmed) {
        rows.push({ ...row, label: statusOf(String(item['status'])), detail: null })
        continue
      }
      const call = { method: action.method, path: filled(action.path, [id]) }
      const answer = await this.call(visit, call)
      if (answer.status === 401) return refusedToken(answer, null, here)
      rows.push({ ...row, ...outcomeOf(answer) })
    }
    const label = `do.${action.name}` as const
    return this.page(
      visit,
      'console-bulk',
      { title: say(label), place, name: say(label) },
      {
        rows,
        label,
        action: action.name,
        danger: action.danger === true,
        isConfirmed,
        csrf: visit.csrf,
        path: `${here}/do/bulk`,
        back: here,
      },
    )
  }

  /** What a file would do, with the button that does it. */
  async previewImport(visit: Visit, place: Place, { file }: UploadedForm): Promise<Outcome> {
    if (file === null)
      return this.form(visit, place, place.action!, {
        typed: {},
        problem: null,
        malformed: 'file',
      })
    return this.imported(visit, place, Buffer.from(file.bytes).toString('utf8'), true)
  }

  /** The import was confirmed. */
  async applyImport(visit: Visit, place: Place, sent: FormFields): Promise<Outcome> {
    const { resource } = place
    const upload = resource.actions?.find(({ name }) => name === 'import')
    return this.imported(
      visit,
      { ...place, action: upload ?? place.action },
      sent.find(([name]) => name === 'csv')?.[1] ?? '',
      false,
    )
  }

  private async imported(visit: Visit, place: Place, csv: string, isTrial: boolean) {
    const path = isTrial ? `${IMPORT}?dry_run=true` : IMPORT
    const call = { method: 'POST', path, body: Buffer.from(csv), contentType: CSV }
    const answer = await this.call(visit, call)
    const page = `${listPath(place)}/do/import`
    if (answer.status === 401) return refusedToken(answer, null, page)
    if (answer.status !== 200)
      return this.form(visit, place, place.action!, { typed: {}, problem: problemOf(answer) })
    const lines =
      isItem(answer.json) && Array.isArray(answer.json['lines']) ? answer.json['lines'] : []
    const read = lines.filter(isItem)
    const isAny = read.some(({ outcome }) => outcome === 'invite' || outcome === 'create')
    const { say } = languageOf(visit.request)
    return this.page(
      visit,
      'console-import',
      {
        title: say('do.import'),
        place,
        name: say('do.import'),
        call: { method: 'POST', path, file: CSV },
      },
      {
        lead: isTrial ? 'console.import.lead' : 'console.import.done',
        lines: read.map(lineOf),
        csv: isTrial && isAny ? csv : null,
        csrf: visit.csrf,
        path: `${listPath(place)}/do/apply`,
        back: listPath(place),
        again: page,
      },
    )
  }
}

const lineOf = ({ line, email, outcome, reason }: Item) => ({
  line: Number(line),
  email: String(email),
  outcome: statusOf(String(outcome)),
  reason: typeof reason === 'string' ? wordOf(`import.${reason}`) : null,
})

/** What came of an action on one of the objects. */
function outcomeOf(answer: ApiAnswer) {
  if (answer.status < 400) return { label: statusOf('success'), detail: null }
  const { title, detail } = problemOf(answer)
  return { label: statusOf('failed'), detail: detail ?? title }
}
