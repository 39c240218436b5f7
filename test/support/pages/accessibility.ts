/**
 * Accessibility checks of a page: reflow, zoom, text spacing, keyboard use (WCAG 2.2, 1.4.4, 1.4.10, 1.4.12, 2.1.1, 2.1.2, 2.4.3,
 * 2.4.7), and forced colours.
 */
import type { Page } from 'playwright-core'

/** Scripts that run in the page and return findings. */
const OVERFLOW = `(() => {
  const width = document.documentElement.clientWidth
  const wide = [...document.querySelectorAll('body *')].filter((element) => {
    if (element.closest('pre, .unseen') && !element.matches('pre')) return false
    const { left, right, width: own, height } = element.getBoundingClientRect()
    return own > 0 && height > 0 && (right > width + 0.5 || left < -0.5)
  })
  const scrolls = document.documentElement.scrollWidth > width
  return [...(scrolls ? ['the page scrolls sideways'] : []), ...wide.map((one) => one.outerHTML.slice(0, 120))]
})()`

const CLIPPED = `[...document.querySelectorAll('button, a.button, label, h1, h2, summary')]
  .filter((one) => !one.matches('.unseen'))
  .filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflow !== 'visible')
  .map((one) => 'cut off: ' + one.outerHTML.slice(0, 120))`

/** WCAG 2.2, 1.4.12: what people's own style sheets do, by way of the object model (the policy allows no style). */
const SPACED = `(() => {
  for (const one of document.querySelectorAll('body, body *')) {
    one.style.letterSpacing = '0.12em'
    one.style.wordSpacing = '0.16em'
    one.style.lineHeight = '1.5'
  }
  for (const one of document.querySelectorAll('p')) one.style.marginBottom = '2em'
})()`
const UNSPACED = `(() => {
  for (const one of document.querySelectorAll('body, body *')) one.removeAttribute('style')
})()`

const MOVING = `[...document.querySelectorAll('*')]
  .filter((one) => {
    const { transitionDuration, animationName } = getComputedStyle(one)
    return animationName !== 'none' || transitionDuration.split(', ').some((secs) => parseFloat(secs) > 0)
  })
  .map((one) => 'moves: ' + one.outerHTML.slice(0, 120))`

/**
 * Forced colours remove backgrounds, so elements that are distinguished by background need a border. The browser draws
 * checkboxes and radio buttons itself.
 */
const UNBORDERED = `[...document.querySelectorAll('main, button, a.button, input:not([type=hidden], [type=checkbox], [type=radio]), .choice, .error, .compare, .warning')]
  .filter((one) => one.getBoundingClientRect().height > 0)
  .filter((one) => {
    const style = getComputedStyle(one)
    return style.borderTopStyle === 'none' || parseFloat(style.borderTopWidth) < 1
  })
  .map((one) => 'without a border: ' + one.outerHTML.slice(0, 120))`

/** Everything that can be reached by keyboard, in the order of the page, numbered. */
const REACHABLE = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
  .filter((one) => !one.disabled && one.type !== 'hidden' && one.checkVisibility())
  .map((one, at) => { one.dataset.stop = at; return one.outerHTML.slice(0, 120) })`

/** What has the focus: its number, and whether that can be seen. */
const FOCUSED = `(() => {
  const one = document.activeElement
  if (one === null || one === document.body) return null
  const { outlineStyle, outlineWidth } = getComputedStyle(one)
  const { top, bottom, height } = one.getBoundingClientRect()
  return {
    stop: Number(one.dataset.stop ?? -1),
    html: one.outerHTML.slice(0, 120),
    ringed: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2,
    inView: bottom > 0 && top < innerHeight && height > 0,
  }
})()`

type Focused = {
  readonly stop: number
  readonly html: string
  readonly ringed: boolean
  readonly inView: boolean
} | null

/** @returns the findings. The page is left unchanged. */
export async function accessibilityFindings(page: Page): Promise<string[]> {
  const size = page.viewportSize() ?? { width: 620, height: 560 }
  const found: string[] = []
  const look = async (where: string, script: string) => {
    for (const one of await page.evaluate<string[]>(script)) found.push(`${where}: ${one}`)
  }

  // 320 wide is 1280 at 400 % (1.4.10).
  await page.setViewportSize({ width: 320, height: 640 })
  await look('320 px', OVERFLOW)
  await page.evaluate(SPACED)
  await look('320 px, text spaced', OVERFLOW)
  await look('320 px, text spaced', CLIPPED)
  await page.evaluate(UNSPACED)
  // 640 wide is 1280 at 200 %; and text twice as large at the same width (1.4.4).
  await page.setViewportSize({ width: 640, height: 480 })
  await look('200 %', OVERFLOW)
  await page.evaluate(`document.documentElement.style.fontSize = '200%'`)
  await look('text at 200 %', OVERFLOW)
  await look('text at 200 %', CLIPPED)
  await page.evaluate(`document.documentElement.removeAttribute('style')`)

  await page.emulateMedia({ reducedMotion: 'reduce' })
  await look('reduced motion', MOVING)
  await page.emulateMedia({ reducedMotion: null, forcedColors: 'active' })
  await look('forced colours', UNBORDERED)
  await page.emulateMedia({ forcedColors: null })
  await page.setViewportSize(size)
  return found
}

/** What Tab leads to. A field for a date has parts, and Tab leads through them first. */
async function next(page: Page, before: number): Promise<Focused> {
  for (;;) {
    await page.keyboard.press('Tab')
    const on = await page.evaluate<Focused>(FOCUSED)
    if (on === null || on.stop !== before || !/^<input[^>]* type="date/.test(on.html)) return on
  }
}

/** Tabs through the page: all stops in order, with visible focus, without a keyboard trap. */
export async function byKeyboard(page: Page): Promise<string[]> {
  const where = 'keyboard'
  const stops = await page.evaluate<string[]>(REACHABLE)
  const found: string[] = []
  // From the top, wherever the focus was.
  await page.evaluate(`document.activeElement?.blur(); getSelection()?.removeAllRanges()
    document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')`)
  for (const [at, html] of stops.entries()) {
    const on = await next(page, at - 1)
    if (on === null) return [...found, `${where}: Tab does not reach ${html}`]
    if (on.stop !== at) return [...found, `${where}: Tab comes to ${on.html} instead of ${html}`]
    if (!on.ringed) found.push(`${where}: the focus is not seen on ${html}`)
    if (!on.inView) found.push(`${where}: the focus is out of sight on ${html}`)
  }
  const last = await next(page, stops.length - 1)
  if (last !== null && stops.length > 1 && last.stop > 0)
    found.push(`${where}: Tab does not lead out of the page but to ${last.html}`)
  await page.evaluate(`document.activeElement?.blur()`)
  return found
}
