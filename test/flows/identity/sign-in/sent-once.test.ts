/** Forms whose code, link or answer works once: their buttons are disabled after a click, by the script of the page. */
import { setImmediate as nextTask } from 'node:timers/promises'
import { runInNewContext } from 'node:vm'
import test, { type ExecutionContext } from 'ava'
import { ask, fixtureOf, present } from '../../../support/agents/delegation.js'
import { openBrowser, type Page } from '../../../support/pages/browser.js'
import { signIn } from '../../../support/identity/person.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('plain')

type Group = { readonly button: { disabled: boolean }; submit?: (event: object) => void }

/** The elements of the page that a selector of the script names, each with a button. */
function groupsOf(html: string): (selector: string) => readonly Group[] {
  const made = new Map<number, Group>()
  return (selector) =>
    selector.split(', ').flatMap((one) => {
      const [, element = '', name = '', attribute = ''] =
        /^([a-z]*)(?:\.([a-z]+))?(?:\[([a-z-]+)\])?$/.exec(one) ?? []
      const tag = element === '' ? '[a-z]+' : element
      const mark = name === '' ? `\\s${attribute}(?=[\\s=>])` : `class="${name}"`
      const found = html.matchAll(new RegExp(`<${tag}\\b[^>]*?${mark}[^>]*>`, 'g'))
      return [...found].map(({ index }) => {
        const group = made.get(index) ?? { button: { disabled: false } }
        made.set(index, group)
        return group
      })
    })
}

/** Runs the script that the page loads. @returns the elements that listen for a submit. */
async function listening(t: ExecutionContext, { html }: Page) {
  const [path] = /\/auth\/script\/[0-9a-f]+/.exec(html) ?? []
  t.truthy(path, 'the page has a script')
  const script = await (await fetch(running.baseUrl + path!)).text()
  const groups = groupsOf(html)
  const elements: Group[] = []
  const page = { shown: () => {} }
  runInNewContext(script, {
    setTimeout,
    navigator: {},
    addEventListener: (_: string, run: () => void) => (page.shown = run),
    document: {
      querySelector: () => null,
      getElementById: () => null,
      querySelectorAll: (selector: string) =>
        selector.includes('reveal')
          ? []
          : groups(selector).map((group) => ({
              querySelectorAll: () => [group.button],
              addEventListener: (_: string, run: (event: object) => void) => {
                group.submit = run
                elements.push(group)
              },
            })),
    },
  })
  return { elements, page }
}

async function sendsOnce(t: ExecutionContext, shown: Page) {
  const { elements, page } = await listening(t, shown)
  t.true(elements.length > 0, shown.path)
  for (const { button, submit } of elements) {
    const settled = async (event: object) => {
      submit!(event)
      t.false(button.disabled, 'the button goes with its form')
      await new Promise((resolve) => setTimeout(resolve, 0))
      await nextTask()
    }
    await settled({ defaultPrevented: true })
    t.false(button.disabled, 'a script sends the form later')
    await settled({ defaultPrevented: false })
    t.true(button.disabled)
  }
  page.shown()
  for (const { button } of elements) t.false(button.disabled, 'Back shows the page as it was')
}

test('the pages of a delegation and of a second factor', async (t) => {
  const workspace = await api.workspace()
  const human = fixtureOf(workspace)
  const { browser } = await present(api, human)
  const { userCode } = await ask(api, workspace.token, { scope: 'openid' })
  await sendsOnce(t, await browser.follow(await browser.get(`/device/delegation/${userCode}`)))
  const other = openBrowser(running)
  const factor = await other.follow(await signIn(other, human))
  t.regex(factor.html, /name="code"/)
  await sendsOnce(t, factor)
})

test('the page that sets up a second factor', async (t) => {
  const workspace = await api.workspace()
  const browser = openBrowser(running)
  const account = await browser.follow(await signIn(browser, fixtureOf(workspace)))
  await sendsOnce(
    t,
    await browser.follow(await browser.submit(account, {}, '/auth/account/factors')),
  )
})
