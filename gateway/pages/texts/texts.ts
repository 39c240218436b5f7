/** The texts of the pages: a file for each language. `{name}` is a placeholder. */
import { type Text, textsIn } from '../../../actors/domain/i18n/languages.js'
import type english from './en.json'

export type MessageKey = keyof typeof english
/** A text with a count has a form for each plural category of its language. */
export const TEXTS = textsIn<Readonly<Record<MessageKey, Text>>>(import.meta.url)

export const isMessage = (key: string): key is MessageKey => Object.hasOwn(TEXTS.en, key)
