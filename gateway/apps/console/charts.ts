/** Charts of the activity of a tenant, as the figures of an SVG picture that is made on the server. */
import type { MessageKey } from '../../pages/texts/texts.js'
import type { Language } from '../../pages/platform/language.js'
import { isItem, type Item } from './declaration.js'

/** As of GET /api/v1/activity. */
export const PERIODS = ['24h', '7d', '30d'] as const
const KINDS = ['sign_ins', 'tokens', 'egress', 'deliveries'] as const

/** The size of the picture, which the page stretches. */
const WIDTH = 300
const HEIGHT = 60
/** Between two bars, as part of their distance. */
const GAP = 0.2
const SEEN_MIN = 1.5

type Chart = {
  readonly title: MessageKey
  readonly total: string
  /** Refused or failed ones. Null: none. */
  readonly failed: string | null
  readonly width: number
  readonly height: number
  readonly points: readonly {
    readonly time: string
    readonly total: number
    readonly failed: number
    readonly x: string
    readonly width: string
    /** One for all, and one for those that failed. */
    readonly bars: readonly { readonly tone: 'all' | 'failed'; y: string; height: string }[]
  }[]
}

const numberIn = (item: Item, name: string) => Number(item[name] ?? 0)
const itemsIn = (value: unknown) => (Array.isArray(value) ? value.filter(isItem) : [])

/** The charts of an answer of GET /api/v1/activity. */
export function chartsOf(answer: unknown, { locale, time }: Language): readonly Chart[] {
  const series = isItem(answer) ? itemsIn(answer['series']) : []
  const format = new Intl.NumberFormat(locale)
  return KINDS.flatMap((kind) => {
    const found = series.find((one) => one['kind'] === kind)
    if (found === undefined) return []
    const failed = numberIn(found, 'failed')
    const given = itemsIn(found['points'])
    const most = Math.max(1, ...given.map((point) => numberIn(point, 'total')))
    const step = WIDTH / Math.max(1, given.length)
    const tall = (count: number) => Math.max(SEEN_MIN, (count / most) * HEIGHT)
    const points = given.map((point, nth) => {
      const counts = { all: numberIn(point, 'total'), failed: numberIn(point, 'failed') }
      return {
        time: time(new Date(String(point['at']))),
        total: counts.all,
        failed: counts.failed,
        x: (nth * step).toFixed(1),
        width: (step * (1 - GAP)).toFixed(1),
        bars: (['all', 'failed'] as const)
          .filter((tone) => counts[tone] > 0)
          .map((tone) => ({
            tone,
            y: (HEIGHT - tall(counts[tone])).toFixed(1),
            height: tall(counts[tone]).toFixed(1),
          })),
      }
    })
    return {
      title: `console.activity.${kind}` as const,
      total: format.format(numberIn(found, 'total')),
      failed: failed === 0 ? null : format.format(failed),
      width: WIDTH,
      height: HEIGHT,
      points,
    }
  })
}
