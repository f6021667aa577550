import './style.css';
import { addCopyButtons } from './copy.ts';
import { rememberLanguage } from './languages.ts';
import { followOldAnchor } from './old-anchors.ts';
import { addSearch } from './search-box.ts';
import { addThemeButton, applyTheme } from './theme.ts';

applyTheme();
// The script is rendering-blocking, so that the theme is there first: the rest waits for the document.
document.addEventListener('DOMContentLoaded', () => {
  followOldAnchor(location);
  addThemeButton();
  addSearch();
  addCopyButtons();
  rememberLanguage();
});
