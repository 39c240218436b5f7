/** The headless browser for tests. */
import {
  type Browser,
  openBrowser as open,
  type Page,
  unescaped,
} from '../../../runtime/clients/client/browser.js'
import { type Reply, replyOf } from '../reply.js'
import { clientEnds } from '../endings.js'

export { attribute, type Form, unescaped } from '../../../runtime/clients/client/browser.js'
export type { Page }
type Asking = 'get' | 'post' | 'submit' | 'follow'
export type TestBrowser = Omit<Browser, Asking> & {
  [Name in Asking]: (...asked: Parameters<Browser[Name]>) => Reply<Page>
}

type Opening = Parameters<typeof open>[0]

/** It is closed at the end of the test file. */
export function openBrowser(opening: Opening): TestBrowser {
  const { baseUrl, ca, userAgent = 'test browser' } = opening
  const browser = open({ baseUrl, ca, userAgent })
  return {
    cookies: browser.cookies,
    get: (...asked) => replyOf(browser.get(...asked)),
    post: (...asked) => replyOf(browser.post(...asked)),
    submit: (...asked) => replyOf(browser.submit(...asked)),
    follow: (...asked) => replyOf(browser.follow(...asked)),
    close: clientEnds(() => browser.close()),
  }
}

/** The values of a data attribute on the page. */
export function dataIn(html: string, name: string): string[] {
  return [...html.matchAll(new RegExp(`\\sdata-${name}="([^"]*)"`, 'g'))].map(([, value]) =>
    unescaped(value!),
  )
}
