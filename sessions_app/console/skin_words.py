"""What the skin says on its pages, so that our catalogue has it: it ships no Chinese.

A test compares this with the skin's own templates and code.
"""

from django.utils.translation import gettext_noop as _

WORDS = (
    _("After you've created a user, you’ll be able to edit more user options."),
    _("All applications"),
    _("Apply Filters"),
    _("Cancel"),
    _("Choose file to upload"),
    _("Click to cancel"),
    _("Click to download"),
    _("Dark"),
    _("Date"),
    _("Expand row"),
    _("False"),
    _("Filters"),
    _("General"),
    _("Go back"),
    _("Image preview"),
    _("Light"),
    _("Loading more results..."),
    _("More actions"),
    _("Next"),
    _("No data"),
    _("No results found"),
    _("Previous"),
    _(
        "Raw passwords are not stored, so there is no way to see this user’s password, but you can "
        'change the password using <a href="{}" class="text-primary-600 dark:text-primary-500">'
        "this form</a>."
    ),
    _("Record picture"),
    _("Reset filters"),
    _("Return to site"),
    _("Run"),
    _("Select action"),
    _("Select action to run"),
    _("Select all rows"),
    _("Select record"),
    _("Select value"),
    _("Submit"),
    _("System"),
    _("This item will be deleted."),
    _("This page yielded into no results. Create a new item or reset your filters."),
    _("Toggle password visibility"),
    _("True"),
    _("Type to search"),
    _("Welcome back to"),
    _("You can not create nested object without parent"),
    _("You have been successfully logged out from the administration"),
)

UNUSED = {
    # Of parts that the console leaves out: the search through names of models, data sets, money.
    "Dataset not found. No action performed.",
    "No recent searches",
    "No results matching your query",
    "Recent searches",
    "Search apps and models...",
    "Select currency",
    "\n                Found %(counter)s result in %(time)s seconds\n            ",
}
